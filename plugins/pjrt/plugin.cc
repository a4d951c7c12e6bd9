// Puts the wrapped table together.
#include "control.h"
#include "cuda_memory.h"
#include "host_memory.h"
#include "overrides.h"
#include "refusal.h"
#include "state.h"

namespace stalloc {
namespace {

const abi::Api* Wrap() {
  const Wanted wanted = PluginToWrap();
  if (wanted.path.empty()) return Refusal(wanted.problem);
  State& state = TheState();
  state.vendor = LoadVendor(wanted.path);
  if (state.vendor.api == nullptr) return Refusal(state.vendor.problem);
  if (state.vendor.path.find("cuda") != std::string::npos) {
    // Now, since the vendor looks up the driver's functions once only.
    const std::string problem = AttachCudaMemory(state.vendor.library);
    state.vendor.is_cuda = problem.empty();
    SetMemoryProblem(problem);
  }
  Table table(state.vendor.api);
  OverrideClients(&table);
  OverrideExecutables(&table);
  OverrideBuffers(&table);
  OverrideMemoryStats(&table);
  return table.api();
}

}  // namespace

const abi::Api* WrappedApi() {
  static const abi::Api* const api = Wrap();
  return api;
}

}  // namespace stalloc
