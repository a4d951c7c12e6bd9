#include "arena_memory.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace stalloc {

using xla_stalloc::arena::Arena;
using xla_stalloc::arena::Execution;

namespace {
// The index of a request outside of executions: no plan has it.
constexpr uint32_t kNoIndex = UINT32_MAX;

[[noreturn]] void Stop(const std::exception& error) {
  std::fprintf(stderr, "xla_stalloc: %s. The process stops before it computes with wrong memory.\n", error.what());
  std::abort();
}
}  // namespace

ArenaMemory::ArenaMemory(std::vector<std::unique_ptr<Arena>> arenas) : arenas_(std::move(arenas)) {}

Arena* ArenaMemory::At(uint32_t device) const { return device < arenas_.size() ? arenas_[device].get() : nullptr; }

uint64_t ArenaMemory::Begin(uint64_t program, uint64_t, uint32_t device) {
  Arena* arena = At(device);
  if (arena == nullptr) return 0;
  const Execution execution = arena->begin(program);
  return execution.slot ? uint64_t{*execution.slot} + 1 : 0;
}

void* ArenaMemory::Allocate(const Key& key, size_t bytes, size_t alignment) {
  Arena* arena = At(key.device);
  if (arena == nullptr) return nullptr;
  Execution execution;
  if (key.ticket != 0) execution.slot = static_cast<uint32_t>(key.ticket - 1);
  try {
    const auto offset = arena->request(execution, key.program == 0 ? kNoIndex : key.allocation, bytes, alignment);
    if (offset) return arena->base() + *offset;
    std::fprintf(stderr, "xla_stalloc: device %u: %s\n", key.device, arena->why_not(bytes).c_str());
  } catch (const xla_stalloc::arena::Inconsistency& error) {
    Stop(error);
  }
  return nullptr;
}

void ArenaMemory::Release(void* pointer) {
  char* address = static_cast<char*>(pointer);
  for (const auto& arena : arenas_) {
    if (address < arena->base() || address >= arena->base() + arena->limit()) continue;
    try {
      return arena->release(static_cast<uint64_t>(address - arena->base()));
    } catch (const xla_stalloc::arena::Inconsistency& error) {
      Stop(error);
    }
  }
}

}  // namespace stalloc
