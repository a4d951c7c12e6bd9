#include "free_intervals.h"

#include <iterator>
#include <stdexcept>
#include <string>

namespace xla_stalloc::arena {

FreeIntervals::FreeIntervals(uint64_t begin, uint64_t end) : begin_(begin), end_(end) { insert(begin, end); }

bool FreeIntervals::take(uint64_t begin, uint64_t bytes) {
  auto after = by_address_.upper_bound(begin);
  if (after == by_address_.begin()) return false;
  auto holder = std::prev(after);
  // Compared as lengths: begin + bytes may not fit 64 bits.
  if (begin >= holder->second || bytes > holder->second - begin) return false;
  cut(holder, begin, begin + bytes);
  return true;
}

std::optional<uint64_t> FreeIntervals::take_best_fit(uint64_t bytes, uint64_t alignment) {
  for (auto entry = by_size_.lower_bound({bytes, 0}); entry != by_size_.end(); ++entry) {
    const auto [size, begin] = *entry;
    const uint64_t start = aligned(begin, alignment);
    if (start - begin > size - bytes) continue;
    cut(by_address_.find(begin), start, start + bytes);
    return start;
  }
  return std::nullopt;
}

void FreeIntervals::give(uint64_t begin, uint64_t bytes) {
  if (bytes == 0) return;
  const uint64_t end = begin + bytes;
  auto after = by_address_.lower_bound(begin);
  const bool outside = begin < begin_ || end > end_ || end < begin;
  const bool twice = (after != by_address_.end() && after->first < end) ||
                     (after != by_address_.begin() && std::prev(after)->second > begin);
  if (outside || twice) {
    throw std::logic_error("bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ") are given back, but " +
                           (outside ? "lie outside the region" : "a part of them is free already"));
  }
  uint64_t joined_begin = begin;
  uint64_t joined_end = end;
  if (after != by_address_.end() && after->first == end) {
    joined_end = after->second;
    auto next = std::next(after);
    erase(after);
    after = next;
  }
  if (after != by_address_.begin() && std::prev(after)->second == begin) {
    joined_begin = std::prev(after)->first;
    erase(std::prev(after));
  }
  insert(joined_begin, joined_end);
}

std::vector<Interval> FreeIntervals::by_address() const {
  std::vector<Interval> intervals;
  intervals.reserve(by_address_.size());
  for (const auto& [begin, end] : by_address_) intervals.push_back({begin, end});
  return intervals;
}

uint64_t FreeIntervals::end_of_taken() const {
  if (by_address_.empty() || by_address_.rbegin()->second != end_) return end_;
  return by_address_.rbegin()->first;
}

void FreeIntervals::insert(uint64_t begin, uint64_t end) {
  if (begin == end) return;
  by_address_.emplace(begin, end);
  by_size_.emplace(end - begin, begin);
  free_bytes_ += end - begin;
}

void FreeIntervals::erase(ByAddress::iterator interval) {
  by_size_.erase({interval->second - interval->first, interval->first});
  free_bytes_ -= interval->second - interval->first;
  by_address_.erase(interval);
}

void FreeIntervals::cut(ByAddress::iterator interval, uint64_t begin, uint64_t end) {
  const auto [whole_begin, whole_end] = *interval;
  erase(interval);
  insert(whole_begin, begin);
  insert(end, whole_end);
}

}  // namespace xla_stalloc::arena
