// The free part of an address range, kept by address and by size.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace xla_stalloc::arena {

struct Interval {
  uint64_t begin;
  uint64_t end;  // exclusive
};

// Disjoint free intervals inside [begin, end), neighbours always joined. Every operation takes O(log intervals).
class FreeIntervals {
 public:
  FreeIntervals(uint64_t begin, uint64_t end);

  // Takes [begin, begin + bytes) if all of it is free.
  bool take(uint64_t begin, uint64_t bytes);

  // Takes `bytes` bytes from the smallest interval that holds them at this alignment, the lowest of equals.
  std::optional<uint64_t> take_best_fit(uint64_t bytes, uint64_t alignment);

  // Gives [begin, begin + bytes) back. Throws std::logic_error if a part of it is free already or lies outside.
  void give(uint64_t begin, uint64_t bytes);

  uint64_t free_bytes() const { return free_bytes_; }
  uint64_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  std::vector<Interval> by_address() const;
  // The end of what was ever asked for: all above is one free interval (or nothing).
  uint64_t end_of_taken() const;

 private:
  using ByAddress = std::map<uint64_t, uint64_t>;  // begin -> end

  void insert(uint64_t begin, uint64_t end);
  void erase(ByAddress::iterator interval);
  void cut(ByAddress::iterator interval, uint64_t begin, uint64_t end);

  const uint64_t begin_;
  const uint64_t end_;
  uint64_t free_bytes_ = 0;
  ByAddress by_address_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // (bytes, begin)
};

// The lowest multiple of `alignment`, a power of two, that is not below `address`.
inline uint64_t aligned(uint64_t address, uint64_t alignment) { return (address + alignment - 1) & ~(alignment - 1); }

}  // namespace xla_stalloc::arena
