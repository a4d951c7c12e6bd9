#include "control.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "host_memory.h"
#include "one_copy.h"
#include "recorder.h"
#include "state.h"

namespace stalloc {
namespace {

std::mutex g_mutex;
Wanted* g_wanted = nullptr;  // guarded by g_mutex

// Texts that are handed out stay valid until the thread asks for the next one.
const char* Keep(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

// Made at the first use and kept: blocks that it served may be released long after.
Recorder& TheRecorder() {
  static Recorder* const recorder = new Recorder(HostAllocator());
  return *recorder;
}
static_assert(sizeof(stalloc_event) == sizeof(Event));

thread_local Calibration* t_calibration = nullptr;

}  // namespace

Wanted PluginToWrap() {
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_wanted != nullptr) return *g_wanted;
  const char* path = std::getenv("XLA_STALLOC_WRAPS");
  if (path != nullptr && std::string(path).find('/') != std::string::npos) return {path, ""};
  return {"", "no plugin to wrap: set XLA_STALLOC_WRAPS to the path of a PJRT plugin, or load this one through the "
              "Python package xla_stalloc, which knows the names cpu, cuda and tpu"};
}

}  // namespace stalloc

using stalloc::TheState;

extern "C" __attribute__((visibility("default"))) const int stalloc_pjrt_mark = 1;

STALLOC_EXPORT const stalloc::abi::Api* GetPjrtApi() {
  // The copy of this library that acts for the process has it under another name, so that this is no endless loop.
  using Get = const stalloc::abi::Api* (*)();
  auto get = reinterpret_cast<Get>(stalloc::OfTheOneCopy("stalloc_wrapped_api"));
  return get == nullptr ? stalloc::WrappedApi() : get();
}

STALLOC_EXPORT const stalloc::abi::Api* stalloc_wrapped_api() { return stalloc::WrappedApi(); }

STALLOC_EXPORT void stalloc_wrap(const char* path, const char* problem) {
  std::lock_guard<std::mutex> lock(stalloc::g_mutex);
  if (stalloc::g_wanted == nullptr) stalloc::g_wanted = new stalloc::Wanted;
  *stalloc::g_wanted = {path == nullptr ? "" : path, problem == nullptr ? "" : problem};
}

STALLOC_EXPORT const char* stalloc_attach(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return stalloc::Keep(std::string(path) + " is not loaded in this process");
  return stalloc::Keep(stalloc::AttachHostMemory(library));
}

STALLOC_EXPORT uint64_t stalloc_calibration_bytes() { return stalloc::kCalibrationBytes; }

STALLOC_EXPORT void stalloc_calibration_begin() {
  if (stalloc::t_calibration == nullptr)
    stalloc::t_calibration = new stalloc::Calibration(stalloc::kCalibrationBytes);
}

STALLOC_EXPORT int stalloc_calibration_end() {
  if (stalloc::t_calibration == nullptr) return 0;
  const bool seen = stalloc::t_calibration->Seen();
  delete stalloc::t_calibration;
  stalloc::t_calibration = nullptr;
  return seen;
}

STALLOC_EXPORT const char* stalloc_memory_problem() { return stalloc::Keep(stalloc::MemoryProblem()); }

STALLOC_EXPORT const char* stalloc_acting_path() { return stalloc::PathOfTheOneCopy(); }

STALLOC_EXPORT void stalloc_read_figures(stalloc_figures* figures) {
  const stalloc::State& state = TheState();
  const auto programs = state.programs.figures();
  const auto& counters = state.counters;
  *figures = {counters.clients,           counters.compiles, counters.loads,  counters.executions, counters.uploads,
              counters.buffers_destroyed, programs.programs, programs.loaded, state.blocks.size(),
              state.launches.figures().lost};
}

STALLOC_EXPORT void stalloc_record(int on) {
  stalloc::Recorder& recorder = stalloc::TheRecorder();
  recorder.Switch(on != 0);
  if (on != 0) stalloc::ServeHostMemoryFrom(&recorder);
}

STALLOC_EXPORT uint64_t stalloc_take_events(stalloc_event* events, uint64_t limit) {
  return stalloc::TheRecorder().Take(reinterpret_cast<stalloc::Event*>(events), limit);
}

STALLOC_EXPORT int stalloc_read_memory(int64_t device, stalloc_memory* memory) {
  const stalloc::State& state = TheState();
  const stalloc::DeviceLedger* ledger =
      device < 0 ? &state.unattributed : state.devices.At(static_cast<uint32_t>(device));
  if (ledger == nullptr) return 0;
  *memory = {ledger->in_use(), ledger->peak(), ledger->allocations(), ledger->largest(),
             static_cast<int64_t>(stalloc::HostMemoryLimit())};
  return 1;
}
