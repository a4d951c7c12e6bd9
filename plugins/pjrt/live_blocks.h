// The blocks that are out: by address, for any thread. It is asked about every `free` of the vendor's, nearly all of
// which concern memory that never was a device buffer, so "not ours" has to be cheap: one look at a counter.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace stalloc {

class Allocator;
class DeviceLedger;

struct Block {
  size_t bytes = 0;
  Allocator* allocator = nullptr;  // who takes it back
  DeviceLedger* ledger = nullptr;  // where it is counted
};

class LiveBlocks {
 public:
  // False if the address is out already, with the block that is there: then two live blocks would share memory.
  bool Insert(const void* pointer, const Block& block, Block* there);
  // Takes a block out; false if the address is none of ours.
  bool Remove(const void* pointer, Block* block);
  size_t size() const { return size_.load(std::memory_order_relaxed); }

  // Around fork(): no other thread may hold a lock when the child is made.
  void LockAll();
  void UnlockAll();

 private:
  static constexpr size_t kShards = 64;
  static constexpr size_t kCounters = 1 << 16;

  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<const void*, Block> blocks;
  };

  static uint64_t Hash(const void* pointer);
  Shard& ShardOf(uint64_t hash) { return shards_[hash >> 58]; }
  std::atomic<uint32_t>& CounterOf(uint64_t hash) { return counters_[(hash >> 32) % kCounters]; }

  std::array<Shard, kShards> shards_;
  // How many live blocks hash to each; 0 settles the question.
  std::array<std::atomic<uint32_t>, kCounters> counters_{};
  std::atomic<size_t> size_{0};
};

}  // namespace stalloc
