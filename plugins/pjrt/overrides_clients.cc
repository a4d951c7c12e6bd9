// Clients: their devices become known while they live.
#include "calibrate.h"
#include "overrides.h"
#include "state.h"

namespace stalloc {
namespace {

// The devices of a client; none if the vendor does not say.
abi::ClientAddressableDevicesArgs DevicesOf(abi::Client* client) {
  auto args = Fresh<abi::ClientAddressableDevicesArgs>();
  args.client = client;
  if (!Try(TheState().vendor.api, &args)) args.num_addressable_devices = 0;
  return args;
}

abi::Error* Create(abi::ClientCreateArgs* args) {
  State& state = TheState();
  abi::Error* error = Call(state.vendor.api, args);
  if (error != nullptr) return error;
  state.counters.clients.fetch_add(1, std::memory_order_relaxed);
  const auto devices = DevicesOf(args->client);
  state.devices.Add(devices.addressable_devices, devices.num_addressable_devices);
  if (devices.num_addressable_devices > 0) CalibrateMemory(args->client, devices.addressable_devices[0]);
  return nullptr;
}

abi::Error* Destroy(abi::ClientDestroyArgs* args) {
  State& state = TheState();
  const auto devices = DevicesOf(args->client);
  state.devices.Remove(devices.addressable_devices, devices.num_addressable_devices);
  return Call(state.vendor.api, args);
}

}  // namespace

void OverrideClients(Table* table) {
  table->Override(&Create);
  table->Override(&Destroy);
}

}  // namespace stalloc
