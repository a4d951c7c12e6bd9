#include "arena.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace xla_stalloc::arena {
namespace {

constexpr unsigned char kPoison = 0xDB;
constexpr unsigned char kCanary = 0xC5;

std::string range(uint64_t begin, uint64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

uint64_t checked_height(const Plan& plan, const Pages& pages) {
  plan.check();
  if (plan.height > pages.bytes()) {
    throw std::invalid_argument("arena plan: its height of " + std::to_string(plan.height) +
                                " bytes does not fit the region of " + std::to_string(pages.bytes()) + " bytes");
  }
  return plan.height;
}

}  // namespace

Arena::Arena(std::unique_ptr<Pages> pages, Plan plan, Options options)
    : pages_(std::move(pages)),
      plan_(std::move(plan)),
      options_(options),
      cursor_(plan_),
      region_(0, checked_height(plan_, *pages_)),
      overflow_(aligned(plan_.height, kAlignment), std::max(aligned(plan_.height, kAlignment), pages_->bytes())),
      committed_(*pages_) {}

Arena::~Arena() = default;

Execution Arena::begin(uint64_t program) {
  std::lock_guard<std::mutex> lock(mutex_);
  needed_soon_.reset();
  slot_ = cursor_.next(program);
  return {slot_};
}

std::optional<uint64_t> Arena::request(const Execution& execution, uint32_t index, uint64_t bytes,
                                       uint64_t alignment) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++statistics_.requests;
  alignment = std::max(alignment, kAlignment);
  if (const auto offset = planned(execution, index, bytes, alignment)) {
    ++statistics_.hits;
    return offset;
  }
  if (const auto offset = in_gap(bytes, alignment)) {
    ++statistics_.in_gaps;
    return offset;
  }
  if (const auto offset = in_overflow(bytes, alignment)) {
    ++statistics_.in_overflow;
    return offset;
  }
  ++statistics_.failures;
  return std::nullopt;
}

std::optional<uint64_t> Arena::planned(const Execution& execution, uint32_t index, uint64_t bytes,
                                       uint64_t alignment) {
  if (!execution.slot) {
    ++statistics_.unknown_program;
    return std::nullopt;
  }
  const Slot& slot = plan_.slots[*execution.slot];
  if (index >= slot.blocks || plan_.blocks[slot.first_block + index].bytes == 0) {
    ++statistics_.unknown_index;
    return std::nullopt;
  }
  const uint32_t number = slot.first_block + index;
  const Block& block = plan_.blocks[number];
  if (bytes > block.bytes || block.offset % alignment != 0) {
    ++statistics_.unfit;
    return std::nullopt;
  }
  const Taken taken{block.bytes, bytes, number, false};
  // The usual case, once the job runs in its cycle: the place is as this very allocation left it the last time.
  const auto before = taken_.find(block.offset);
  if (before != taken_.end() && before->second.parked && before->second.block == number) {
    before->second = taken;
    went_live(block.offset, taken);
    return block.offset;
  }
  if (!region_.take(block.offset, block.bytes)) {
    unpark(block.offset, block.offset + block.bytes);
    if (!region_.take(block.offset, block.bytes)) {
      ++statistics_.occupied;
      return std::nullopt;
    }
  }
  return hand_out(block.offset, taken);
}

// Best fit over what is free now and not wanted by the executions that are expected next.
std::optional<uint64_t> Arena::in_gap(uint64_t bytes, uint64_t alignment) {
  const uint64_t wanted = aligned(std::max<uint64_t>(bytes, 1) + options_.red_zone, kAlignment);
  if (wanted < bytes || plan_.height < wanted) return std::nullopt;
  unpark(0, plan_.height);
  if (region_.largest() < wanted) return std::nullopt;
  const std::vector<Interval>& needed = needed_soon();
  std::optional<uint64_t> best;
  uint64_t best_bytes = UINT64_MAX;
  const auto consider = [&](uint64_t begin, uint64_t end) {
    const uint64_t start = aligned(begin, alignment);
    if (start > end || end - start < wanted || end - begin >= best_bytes) return;
    best = start;
    best_bytes = end - begin;
  };
  auto next = needed.begin();
  for (const Interval& free : region_.by_address()) {
    uint64_t begin = free.begin;
    while (next != needed.end() && next->end <= begin) ++next;
    for (auto use = next; use != needed.end() && use->begin < free.end; ++use) {
      if (use->begin > begin) consider(begin, use->begin);
      begin = std::max(begin, use->end);
    }
    if (begin < free.end) consider(begin, free.end);
  }
  if (!best || !region_.take(*best, wanted)) return std::nullopt;
  return hand_out(*best, {wanted, bytes, kNoBlock, false});
}

std::optional<uint64_t> Arena::in_overflow(uint64_t bytes, uint64_t alignment) {
  const uint64_t wanted = aligned(std::max<uint64_t>(bytes, 1) + options_.red_zone, kAlignment);
  if (wanted < bytes) return std::nullopt;
  const auto offset = overflow_.take_best_fit(wanted, alignment);
  if (!offset) return std::nullopt;
  return hand_out(*offset, {wanted, bytes, kNoBlock, false});
}

const std::vector<Interval>& Arena::needed_soon() {
  if (needed_soon_) return *needed_soon_;
  std::vector<Interval> uses;
  std::vector<uint32_t> slots = cursor_.upcoming(options_.pipeline);
  if (slot_) slots.push_back(*slot_);
  for (const uint32_t slot : slots) {
    for (uint32_t index = 0; index < plan_.slots[slot].blocks; ++index) {
      const Block& block = plan_.blocks[plan_.slots[slot].first_block + index];
      if (block.bytes > 0) uses.push_back({block.offset, block.offset + block.bytes});
    }
  }
  std::sort(uses.begin(), uses.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> joined;
  for (const Interval& use : uses) {
    if (!joined.empty() && use.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, use.end);
    } else {
      joined.push_back(use);
    }
  }
  needed_soon_ = std::move(joined);
  return *needed_soon_;
}

// The addresses are taken; puts memory behind them and keeps the account. They go back if there is no memory.
std::optional<uint64_t> Arena::hand_out(uint64_t offset, const Taken& taken) {
  if (!back_with_pages(offset, offset + taken.bytes)) {
    owner(offset).give(offset, taken.bytes);
    return std::nullopt;
  }
  if (!taken_.emplace(offset, taken).second) {
    throw Inconsistency("a live block begins at " + std::to_string(offset) + " already");
  }
  went_live(offset, taken);
  return offset;
}

bool Arena::back_with_pages(uint64_t begin, uint64_t end) {
  if (end <= plan_.height && region_committed_) return true;
  const uint64_t missing = committed_.missing(begin, end);
  if (missing == 0) return true;
  const uint64_t in_use = std::max(statistics_.peak_in_use_bytes, statistics_.in_use_bytes + (end - begin));
  const auto most = std::max<uint64_t>(plan_.height, static_cast<uint64_t>((1 + options_.idle_fraction) * in_use));
  if (committed_.bytes() + missing > most) decommit_idle(committed_.bytes() + missing - most);
  if (!committed_.commit(begin, end)) {
    decommit_idle(UINT64_MAX);
    if (!committed_.commit(begin, end)) return false;
  }
  region_committed_ = committed_.missing(0, plan_.height) == 0;
  statistics_.peak_reserved_bytes = std::max(statistics_.peak_reserved_bytes, committed_.bytes());
  return true;
}

uint64_t Arena::decommit_idle(uint64_t enough) {
  uint64_t gone = 0;
  // Above the region first: the plan does not want that back.
  for (FreeIntervals* free : {&overflow_, &region_}) {
    if (gone >= enough) break;
    if (free == &region_) unpark(0, plan_.height);
    std::vector<Interval> intervals = free->by_address();
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.end - a.begin > b.end - b.begin; });
    for (const Interval& interval : intervals) {
      if (gone >= enough) break;
      gone += committed_.decommit(interval.begin, interval.end, enough - gone);
    }
    if (free == &region_ && gone > 0) region_committed_ = false;
  }
  return gone;
}

// Lets go of the parked blocks that lie in [begin, end).
void Arena::unpark(uint64_t begin, uint64_t end) {
  auto entry = taken_.upper_bound(begin);
  if (entry != taken_.begin()) --entry;
  while (entry != taken_.end() && entry->first < end) {
    if (entry->second.parked && entry->first + entry->second.bytes > begin) {
      owner(entry->first).give(entry->first, entry->second.bytes);
      entry = taken_.erase(entry);
    } else {
      ++entry;
    }
  }
}

void Arena::went_live(uint64_t offset, const Taken& taken) {
  ++statistics_.live_blocks;
  statistics_.in_use_bytes += taken.used;
  statistics_.peak_in_use_bytes = std::max(statistics_.peak_in_use_bytes, statistics_.in_use_bytes);
  if (options_.shadow) {
    const uint64_t end = offset + taken.bytes;
    const auto after = shadow_.upper_bound(offset);
    const bool above = after != shadow_.end() && after->first < end;
    const bool below = after != shadow_.begin() && std::prev(after)->second > offset;
    if (above || below) {
      const auto& other = above ? *after : *std::prev(after);
      throw Inconsistency("two live blocks overlap: " + range(offset, end) + " and " +
                          range(other.first, other.second));
    }
    shadow_.emplace(offset, end);
  }
  if (options_.red_zone > 0) guard(offset, taken);
}

void Arena::release(uint64_t offset) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = taken_.find(offset);
  if (entry == taken_.end() || entry->second.parked) {
    throw Inconsistency("a block at offset " + std::to_string(offset) + " is released, but none is live there");
  }
  Taken& taken = entry->second;
  if (options_.red_zone > 0) check_guard(offset, taken);
  if (options_.shadow) {
    const auto shadow = shadow_.find(offset);
    if (shadow == shadow_.end() || shadow->second != offset + taken.bytes) {
      throw Inconsistency("the shadow does not know the block " + range(offset, offset + taken.bytes));
    }
    shadow_.erase(shadow);
  }
  if (options_.poison && base() != nullptr) std::memset(base() + offset, kPoison, taken.used);
  --statistics_.live_blocks;
  statistics_.in_use_bytes -= taken.used;
  if (taken.block != kNoBlock) {
    taken.parked = true;
    return;
  }
  owner(offset).give(offset, taken.bytes);
  taken_.erase(entry);
}

// Behind the bytes that were asked for: canaries, but whole pages are protected.
void Arena::guard(uint64_t offset, const Taken& taken) {
  if (base() == nullptr) return;
  const uint64_t page = pages_->granularity();
  const uint64_t begin = offset + taken.used;
  const uint64_t end = offset + taken.bytes;
  const uint64_t first = (begin + page - 1) / page * page;
  const uint64_t last = end / page * page;
  if (first >= last) {
    std::memset(base() + begin, kCanary, end - begin);
    return;
  }
  std::memset(base() + begin, kCanary, first - begin);
  std::memset(base() + last, kCanary, end - last);
  pages_->protect(first, last - first, true);
}

void Arena::check_guard(uint64_t offset, const Taken& taken) {
  if (base() == nullptr) return;
  const uint64_t page = pages_->granularity();
  const uint64_t begin = offset + taken.used;
  const uint64_t end = offset + taken.bytes;
  const uint64_t first = (begin + page - 1) / page * page;
  const uint64_t last = end / page * page;
  if (first < last) pages_->protect(first, last - first, false);
  for (uint64_t at = begin; at < end; ++at) {
    if (first < last && at >= first && at < last) continue;
    if (static_cast<unsigned char>(base()[at]) != kCanary) {
      throw Inconsistency("byte " + std::to_string(at - offset) + " of the block at offset " + std::to_string(offset) +
                          " was written, which has " + std::to_string(taken.used) + " bytes");
    }
  }
}

uint64_t Arena::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  return decommit_idle(UINT64_MAX);
}

Statistics Arena::statistics() {
  std::lock_guard<std::mutex> lock(mutex_);
  statistics_.reserved_bytes = committed_.bytes();
  statistics_.largest_free_bytes = region_.largest();
  return statistics_;
}

std::string Arena::why_not(uint64_t bytes) {
  const Statistics now = statistics();
  return "the arena has no room for " + std::to_string(bytes) + " bytes: " + std::to_string(now.in_use_bytes) +
         " bytes are in use in " + std::to_string(now.live_blocks) + " blocks, " +
         std::to_string(now.reserved_bytes) + " are reserved of " + std::to_string(limit()) +
         ", the largest free block of the planned region has " + std::to_string(now.largest_free_bytes);
}

}  // namespace xla_stalloc::arena
