// Buffers: what is uploaded or copied to a device is no part of any execution, even on a thread that executes.
#include "context.h"
#include "overrides.h"
#include "state.h"

namespace stalloc {
namespace {

// Of the device, or of the one device that reaches the memory; of none where several do.
Context ContextOf(abi::Device* device, abi::Memory* memory = nullptr) {
  if (device == nullptr && memory != nullptr) {
    auto args = Fresh<abi::MemoryAddressableByDevicesArgs>();
    args.memory = memory;
    if (Try(TheState().vendor.api, &args) && args.num_devices == 1) device = args.devices[0];
  }
  const Devices::Entry entry = TheState().devices.Find(device);
  Context context;
  context.device = entry.position;
  context.ledger = entry.ledger;
  return context;
}

abi::Error* Upload(abi::ClientBufferFromHostBufferArgs* args) {
  State& state = TheState();
  state.counters.uploads.fetch_add(1, std::memory_order_relaxed);
  Context context = ContextOf(args->device, args->memory);
  Scope scope(&context);
  return Call(state.vendor.api, args);
}

abi::Error* CopyToDevice(abi::BufferCopyToDeviceArgs* args) {
  Context context = ContextOf(args->dst_device);
  Scope scope(&context);
  return Call(TheState().vendor.api, args);
}

abi::Error* CopyToMemory(abi::BufferCopyToMemoryArgs* args) {
  Context context = ContextOf(nullptr, args->dst_memory);
  Scope scope(&context);
  return Call(TheState().vendor.api, args);
}

abi::Error* CreateUninitialized(abi::ClientCreateUninitializedBufferArgs* args) {
  Context context = ContextOf(args->device, args->memory);
  Scope scope(&context);
  return Call(TheState().vendor.api, args);
}

abi::Error* Destroy(abi::BufferDestroyArgs* args) {
  State& state = TheState();
  state.counters.buffers_destroyed.fetch_add(1, std::memory_order_relaxed);
  return Call(state.vendor.api, args);
}

}  // namespace

void OverrideBuffers(Table* table) {
  table->Override(&Upload);
  table->Override(&CopyToDevice);
  table->Override(&CopyToMemory);
  table->Override(&CreateUninitialized);
  table->Override(&Destroy);
}

}  // namespace stalloc
