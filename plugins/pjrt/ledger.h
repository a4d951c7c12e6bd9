// What a device's memory holds, counted where it is allocated.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stalloc {

// Bytes and counts since the beginning, or since `ClearPeak`. All may be read at any time.
class DeviceLedger {
 public:
  void Add(size_t bytes) {
    const int64_t now = in_use_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed) + bytes;
    allocations_.fetch_add(1, std::memory_order_relaxed);
    Raise(peak_, now);
    Raise(largest_, static_cast<int64_t>(bytes));
  }

  void Subtract(size_t bytes) { in_use_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed); }

  void ClearPeak() { peak_.store(in_use_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

  int64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  int64_t largest() const { return largest_.load(std::memory_order_relaxed); }
  int64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }

 private:
  static void Raise(std::atomic<int64_t>& mark, int64_t value) {
    int64_t before = mark.load(std::memory_order_relaxed);
    while (before < value && !mark.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
    }
  }

  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> largest_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace stalloc
