// device.memory_stats(): the vendor's own figures where it has any, else what was counted here.
#include "host_memory.h"
#include "overrides.h"
#include "state.h"

namespace stalloc {
namespace {

void Set(abi::DeviceMemoryStatsArgs::Figure* figure, int64_t value) {
  figure->value = value;
  figure->is_set = true;
}

abi::Error* MemoryStats(abi::DeviceMemoryStatsArgs* args) {
  const State& state = TheState();
  abi::Error* error = Call(state.vendor.api, args);
  const DeviceLedger* ledger = state.devices.Find(args->device).ledger;
  if (error == nullptr || ledger == nullptr || !HostMemoryIsServed()) return error;
  Consume(state.vendor.api, error);
  args->bytes_in_use = ledger->in_use();
  Set(&args->peak_bytes_in_use, ledger->peak());
  Set(&args->num_allocs, ledger->allocations());
  Set(&args->largest_alloc_size, ledger->largest());
  // The devices of a host share its memory; each may use all of it.
  Set(&args->bytes_limit, static_cast<int64_t>(HostMemoryLimit()));
  for (auto* unknown : {&args->bytes_reserved, &args->peak_bytes_reserved, &args->bytes_reservable_limit,
                        &args->largest_free_block_bytes, &args->pool_bytes, &args->peak_pool_bytes})
    unknown->is_set = false;
  return nullptr;
}

abi::Error* ClearMemoryStats(abi::DeviceClearMemoryStatsArgs* args) {
  const State& state = TheState();
  abi::Error* error = Call(state.vendor.api, args);
  DeviceLedger* ledger = state.devices.Find(args->device).ledger;
  if (error == nullptr || ledger == nullptr || !HostMemoryIsServed()) return error;
  Consume(state.vendor.api, error);
  ledger->ClearPeak();
  return nullptr;
}

}  // namespace

void OverrideMemoryStats(Table* table) {
  table->Override(&MemoryStats);
  table->Override(&ClearMemoryStats);
}

}  // namespace stalloc
