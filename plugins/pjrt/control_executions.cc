// Executions that are announced from outside, where there is no wrapped plugin.
#include <memory>
#include <utility>

#include "context.h"
#include "control.h"
#include "host_memory.h"
#include "state.h"

namespace stalloc {
namespace {

struct Announced {
  Context context;
  std::unique_ptr<Scope> scope;
};

}  // namespace
}  // namespace stalloc

using stalloc::Announced;
using stalloc::TheState;

STALLOC_EXPORT void* stalloc_execution_begin(uint64_t fingerprint, uint32_t devices) {
  stalloc::State& state = TheState();
  stalloc::Loaded loaded;
  loaded.program = state.programs.Of(fingerprint);
  for (uint32_t device = 0; device < devices; ++device) {
    loaded.devices.push_back(device);
    loaded.ledgers.push_back(state.devices.Ledger(device));
  }
  const uint64_t execution = loaded.program->executions.fetch_add(1, std::memory_order_relaxed);
  state.counters.executions.fetch_add(1, std::memory_order_relaxed);
  auto* announced = new Announced;
  announced->context.launch = std::make_shared<stalloc::Launch>(
      std::make_shared<const stalloc::Loaded>(std::move(loaded)), execution, stalloc::HostAllocator());
  announced->context.waits = true;
  state.launches.Add(announced->context.launch);
  announced->scope = std::make_unique<stalloc::Scope>(devices == 1 ? &announced->context : nullptr);
  return announced;
}

STALLOC_EXPORT void stalloc_execution_end(void* execution, int is_over) {
  std::unique_ptr<Announced> announced(static_cast<Announced*>(execution));
  announced->scope = nullptr;
  const auto& launch = announced->context.launch;
  if (!is_over) return;
  stalloc::Program* program = launch->loaded().program;
  launch->SetOver();
  // Whatever still waits of it never came.
  TheState().launches.Remove(launch.get());
  if (launch->sizes() != nullptr) return;
  if (auto learnt = launch->Learnt()) std::atomic_store(&program->sizes, std::move(learnt));
}

STALLOC_EXPORT int stalloc_program_is_known(uint64_t program) {
  return std::atomic_load(&TheState().programs.Of(program)->sizes) != nullptr;
}
