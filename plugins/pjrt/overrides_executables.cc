// Executables: compiled or loaded, they are known by fingerprint; executed, they are counted, and what they allocate
// on the way is known to be theirs.
#include <string_view>
#include <utility>

#include "calibrate.h"
#include "context.h"
#include "host_memory.h"
#include "learning.h"
#include "overrides.h"
#include "state.h"

namespace stalloc {
namespace {

// The vendor's fingerprint of the executable if it has one, else one of what the executable was made from; 0 if there
// is neither.
uint64_t FingerprintOf(abi::Executable* executable, std::string_view source) {
  auto args = Fresh<abi::ExecutableFingerprintArgs>();
  args.executable = executable;
  if (executable != nullptr && Try(TheState().vendor.api, &args) && args.executable_fingerprint_size > 0)
    return Fingerprint({args.executable_fingerprint, args.executable_fingerprint_size});
  return source.empty() ? 0 : Fingerprint(source);
}

void Know(abi::LoadedExecutable* executable, std::string_view source) {
  State& state = TheState();
  const abi::Api* api = state.vendor.api;
  Loaded loaded;
  auto devices = Fresh<abi::LoadedExecutableAddressableDevicesArgs>();
  devices.executable = executable;
  if (!Try(api, &devices)) devices.num_addressable_devices = 0;
  for (size_t i = 0; i < devices.num_addressable_devices; ++i) {
    const Devices::Entry entry = state.devices.Find(devices.addressable_devices[i]);
    loaded.devices.push_back(entry.position);
    loaded.ledgers.push_back(entry.ledger);
  }
  auto get = Fresh<abi::LoadedExecutableGetExecutableArgs>();
  get.loaded_executable = executable;
  if (!Try(api, &get)) get.executable = nullptr;
  auto outputs = Fresh<abi::ExecutableNumOutputsArgs>();
  outputs.executable = get.executable;
  if (get.executable != nullptr && Try(api, &outputs)) loaded.outputs = outputs.num_outputs;
  const uint64_t fingerprint = FingerprintOf(get.executable, source);
  if (fingerprint != 0) state.programs.Add(executable, fingerprint, std::move(loaded));
  auto destroy = Fresh<abi::ExecutableDestroyArgs>();
  destroy.executable = get.executable;
  if (get.executable != nullptr) Try(api, &destroy);
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
  if (const auto loaded = TheState().programs.Find(args->executable)) StopLearning(*loaded);
  TheState().programs.Remove(args->executable);
  return Call(TheState().vendor.api, args);
}

abi::Error* Execute(abi::LoadedExecutableExecuteArgs* args) {
  State& state = TheState();
  state.counters.executions.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<const Loaded> loaded = state.programs.Find(args->executable);
  if (loaded == nullptr) return Call(state.vendor.api, args);
  const uint64_t execution = loaded->program->executions.fetch_add(1, std::memory_order_relaxed);
  // An executable without devices of its own (a portable one) is told its device with each call, and stays unattributed.
  if (!MemoryIsServed() || loaded->devices.size() != args->num_devices) return Call(state.vendor.api, args);

  const bool learns = BeginsToLearn(loaded->program);
  Context context;
  context.launch = std::make_shared<Launch>(loaded, execution, HostAllocator());
  context.waits = learns || context.launch->sizes() != nullptr;
  if (context.waits) state.launches.Add(context.launch);
  abi::Error* error;
  {
    // Several devices are served by threads of the vendor's, also for a program that runs at once.
    Scope scope(args->num_devices == 1 ? &context : nullptr);
    error = Call(state.vendor.api, args);
  }
  if (error != nullptr) state.launches.Remove(context.launch.get());
  if (learns) {
    const bool ended = args->num_devices == 1 && !context.waits;
    LearnFrom(context.launch, error != nullptr ? nullptr : args->output_lists, ended);
  }
  return error;
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
