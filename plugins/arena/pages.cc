#include "pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

namespace xla_stalloc::arena {
namespace {

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
uint64_t round_down(uint64_t value, uint64_t unit) { return value / unit * unit; }

}  // namespace

HostPages::HostPages(uint64_t bytes) : granularity_(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))) {
  bytes_ = round_up(std::max<uint64_t>(bytes, 1), granularity_);
  void* start = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<char*>(start);
}

HostPages::~HostPages() { munmap(base_, bytes_); }

void HostPages::decommit(uint64_t offset, uint64_t bytes) { madvise(base_ + offset, bytes, MADV_DONTNEED); }

void HostPages::protect(uint64_t offset, uint64_t bytes, bool protect) {
  mprotect(base_ + offset, bytes, protect ? PROT_NONE : PROT_READ | PROT_WRITE);
}

bool CountedPages::commit(uint64_t, uint64_t bytes) {
  if (bytes > capacity_ - committed_) return false;
  committed_ += bytes;
  return true;
}

uint64_t Committed::missing(uint64_t begin, uint64_t end) const {
  begin = round_down(begin, pages_.granularity());
  end = round_up(end, pages_.granularity());
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin()) --range;
  uint64_t present = 0;
  for (; range != ranges_.end() && range->first < end; ++range) {
    const uint64_t from = std::max(begin, range->first);
    const uint64_t to = std::min(end, range->second);
    if (from < to) present += to - from;
  }
  return end - begin - present;
}

bool Committed::commit(uint64_t begin, uint64_t end) {
  begin = round_down(begin, pages_.granularity());
  end = round_up(end, pages_.granularity());
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin() && std::prev(range)->second >= begin) --range;
  std::vector<std::pair<uint64_t, uint64_t>> holes;
  uint64_t joined_begin = begin;
  uint64_t joined_end = end;
  uint64_t position = begin;
  auto last = range;
  for (; last != ranges_.end() && last->first <= end; ++last) {
    if (position < last->first) holes.emplace_back(position, last->first);
    position = std::max(position, last->second);
    joined_begin = std::min(joined_begin, last->first);
    joined_end = std::max(joined_end, last->second);
  }
  if (position < end) holes.emplace_back(position, end);
  for (size_t done = 0; done < holes.size(); ++done) {
    if (pages_.commit(holes[done].first, holes[done].second - holes[done].first)) continue;
    for (size_t undone = 0; undone < done; ++undone) {
      pages_.decommit(holes[undone].first, holes[undone].second - holes[undone].first);
    }
    return false;
  }
  if (holes.empty()) return true;
  for (const auto& [from, to] : holes) bytes_ += to - from;
  ranges_.erase(range, last);
  ranges_.emplace(joined_begin, joined_end);
  return true;
}

uint64_t Committed::decommit(uint64_t begin, uint64_t end, uint64_t enough) {
  begin = round_up(begin, pages_.granularity());
  end = round_down(end, pages_.granularity());
  uint64_t gone = 0;
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin()) --range;
  while (range != ranges_.end() && range->first < end && gone < enough) {
    const auto [whole_begin, whole_end] = *range;
    const uint64_t to = std::min(end, whole_end);
    uint64_t from = std::max(begin, whole_begin);
    if (from >= to) {
      ++range;
      continue;
    }
    // From the top, so that what stays lies low.
    if (enough - gone < to - from) from = std::max(from, to - round_up(enough - gone, pages_.granularity()));
    pages_.decommit(from, to - from);
    gone += to - from;
    range = ranges_.erase(range);
    if (whole_begin < from) ranges_.emplace(whole_begin, from);
    if (to < whole_end) range = ranges_.emplace(to, whole_end).first;
  }
  bytes_ -= gone;
  return gone;
}

}  // namespace xla_stalloc::arena
