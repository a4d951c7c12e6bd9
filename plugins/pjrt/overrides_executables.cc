// Executables: compiled or loaded, they are known by fingerprint; executed, they are counted, and what they allocate
// on the way is known to be theirs.
#include <string_view>

#include "context.h"
#include "overrides.h"
#include "state.h"

namespace stalloc {
namespace {

// The vendor's fingerprint of the executable if it has one, else one of what the executable was made from; 0 if there
// is neither.
uint64_t FingerprintOf(abi::LoadedExecutable* loaded, std::string_view source) {
  const abi::Api* api = TheState().vendor.api;
  uint64_t fingerprint = 0;
  auto get = Fresh<abi::LoadedExecutableGetExecutableArgs>();
  get.loaded_executable = loaded;
  if (Has<abi::ExecutableFingerprintArgs>(api) && Try(api, &get)) {
    auto args = Fresh<abi::ExecutableFingerprintArgs>();
    args.executable = get.executable;
    if (Try(api, &args) && args.executable_fingerprint_size > 0)
      fingerprint = Fingerprint({args.executable_fingerprint, args.executable_fingerprint_size});
    auto destroy = Fresh<abi::ExecutableDestroyArgs>();
    destroy.executable = get.executable;
    Try(api, &destroy);
  }
  return fingerprint != 0 || source.empty() ? fingerprint : Fingerprint(source);
}

void Know(abi::LoadedExecutable* loaded, std::string_view source) {
  State& state = TheState();
  const uint64_t fingerprint = FingerprintOf(loaded, source);
  if (fingerprint == 0) return;
  auto args = Fresh<abi::LoadedExecutableAddressableDevicesArgs>();
  args.executable = loaded;
  if (!Try(state.vendor.api, &args)) args.num_addressable_devices = 0;
  std::vector<uint32_t> positions;
  std::vector<DeviceLedger*> ledgers;
  for (size_t i = 0; i < args.num_addressable_devices; ++i) {
    const Devices::Entry entry = state.devices.Find(args.addressable_devices[i]);
    positions.push_back(entry.position);
    ledgers.push_back(entry.ledger);
  }
  state.programs.Add(loaded, fingerprint, std::move(positions), std::move(ledgers));
}

abi::Error* Compile(abi::ClientCompileArgs* args) {
  State& state = TheState();
  abi::Error* error = Call(state.vendor.api, args);
  if (error != nullptr) return error;
  state.counters.compiles.fetch_add(1, std::memory_order_relaxed);
  Know(args->executable, {args->program->code, args->program->code_size});
  return nullptr;
}

abi::Error* Deserialize(abi::ExecutableDeserializeAndLoadArgs* args) {
  State& state = TheState();
  abi::Error* error = Call(state.vendor.api, args);
  if (error != nullptr) return error;
  state.counters.loads.fetch_add(1, std::memory_order_relaxed);
  Know(args->loaded_executable, {args->serialized_executable, args->serialized_executable_size});
  return nullptr;
}

abi::Error* Load(abi::ClientLoadArgs* args) {
  State& state = TheState();
  abi::Error* error = Call(state.vendor.api, args);
  if (error != nullptr) return error;
  state.counters.loads.fetch_add(1, std::memory_order_relaxed);
  Know(args->loaded_executable, {});  // compile options alone do not tell programs apart
  return nullptr;
}

abi::Error* Destroy(abi::LoadedExecutableDestroyArgs* args) {
  TheState().programs.Remove(args->executable);
  return Call(TheState().vendor.api, args);
}

abi::Error* Execute(abi::LoadedExecutableExecuteArgs* args) {
  State& state = TheState();
  state.counters.executions.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<const Loaded> loaded = state.programs.Find(args->executable);
  if (loaded == nullptr) return Call(state.vendor.api, args);
  Context context;
  context.program = loaded->program->fingerprint;
  context.execution = loaded->program->executions.fetch_add(1, std::memory_order_relaxed);
  if (!loaded->devices.empty()) {
    context.device = loaded->devices[0];
    context.ledger = loaded->ledgers[0];
  }
  Scope scope(&context);
  return Call(state.vendor.api, args);
}

}  // namespace

void OverrideExecutables(Table* table) {
  table->Override(&Compile);
  table->Override(&Deserialize);
  table->Override(&Load);
  table->Override(&Destroy);
  table->Override(&Execute);
}

}  // namespace stalloc
