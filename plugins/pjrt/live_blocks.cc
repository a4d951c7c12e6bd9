#include "live_blocks.h"

namespace stalloc {

uint64_t LiveBlocks::Hash(const void* pointer) {
  // Fibonacci hashing; blocks are aligned to 16 bytes at least.
  return (reinterpret_cast<uintptr_t>(pointer) >> 4) * 0x9e3779b97f4a7c15ull;
}

bool LiveBlocks::Insert(const void* pointer, const Block& block, Block* there) {
  const uint64_t hash = Hash(pointer);
  Shard& shard = ShardOf(hash);
  {
    std::lock_guard<std::mutex> lock(shard.mutex);
    auto [place, is_new] = shard.blocks.emplace(pointer, block);
    if (!is_new) {
      *there = place->second;
      return false;
    }
  }
  // Whoever frees this block learnt its address from the thread that runs here, so it sees this count.
  CounterOf(hash).fetch_add(1, std::memory_order_relaxed);
  size_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool LiveBlocks::Remove(const void* pointer, Block* block) {
  const uint64_t hash = Hash(pointer);
  std::atomic<uint32_t>& counter = CounterOf(hash);
  if (counter.load(std::memory_order_relaxed) == 0) return false;
  Shard& shard = ShardOf(hash);
  {
    std::lock_guard<std::mutex> lock(shard.mutex);
    auto found = shard.blocks.find(pointer);
    if (found == shard.blocks.end()) return false;
    *block = found->second;
    shard.blocks.erase(found);
  }
  counter.fetch_sub(1, std::memory_order_relaxed);
  size_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void LiveBlocks::LockAll() {
  for (Shard& shard : shards_) shard.mutex.lock();
}

void LiveBlocks::UnlockAll() {
  for (Shard& shard : shards_) shard.mutex.unlock();
}

}  // namespace stalloc
