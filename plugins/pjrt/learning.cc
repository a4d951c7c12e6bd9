#include "learning.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "events.h"
#include "host_memory.h"
#include "state.h"

namespace stalloc {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::microseconds kPause{50};

bool HasEnded(const Launch& launch) {
  for (size_t device = 0; device < launch.devices(); ++device)
    if (!launch.HasEnded(device)) return false;
  return true;
}

void Publish(Program* program) {  // with its mutex held
  if (auto learnt = program->learning->Learnt()) std::atomic_store(&program->sizes, std::move(learnt));
  program->learning->SetOver();
  TheState().launches.Remove(program->learning.get());
  program->learning = nullptr;
}

}  // namespace

bool BeginsToLearn(Program* program) {
  if (std::atomic_load(&program->sizes) != nullptr) return false;
  std::unique_lock<std::mutex> lock(program->mutex);
  if (program->learning == nullptr) {
    if (std::atomic_load(&program->sizes) != nullptr) return false;
    // Filled in by LearnFrom; until then, other threads that execute the program see that someone learns.
    program->learning = std::make_shared<Launch>(std::make_shared<const Loaded>(Loaded{program, {}, {}, 0}), 0,
                                                 HostAllocator());
    return true;
  }
  const std::shared_ptr<Launch> learning = program->learning;
  if (learning->devices() == 0) return false;  // still being called
  lock.unlock();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!HasEnded(*learning)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  lock.lock();
  if (program->learning == learning) Publish(program);
  return false;
}

void LearnFrom(const std::shared_ptr<Launch>& launch, abi::Buffer** const* outputs, bool ended) {
  Program* program = launch->loaded().program;
  std::vector<abi::Event*> ends;
  for (size_t device = 0; outputs != nullptr && !ended && launch->loaded().outputs > 0 && device < launch->devices();
       ++device) {
    auto ready = Fresh<abi::BufferReadyEventArgs>();
    ready.buffer = outputs[device][0];
    if (Try(TheState().vendor.api, &ready)) ends.push_back(ready.event);
  }
  std::lock_guard<std::mutex> lock(program->mutex);
  program->learning = launch;
  if (outputs != nullptr && ended) return Publish(program);
  const bool can_be_known = ends.size() == launch->devices();
  launch->SetEnds(std::move(ends));
  if (can_be_known) return;
  TheState().launches.Remove(launch.get());
  program->learning = nullptr;
}

void StopLearning(const Loaded& loaded) {
  std::lock_guard<std::mutex> lock(loaded.program->mutex);
  std::shared_ptr<Launch>& learning = loaded.program->learning;
  if (learning == nullptr || &learning->loaded() != &loaded) return;
  if (HasEnded(*learning)) return Publish(loaded.program);
  TheState().launches.Remove(learning.get());
  learning = nullptr;
}

}  // namespace stalloc
