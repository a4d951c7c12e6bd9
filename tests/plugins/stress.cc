// The C++ parts under load, for sanitizers: `stress LIBRARY`, where LIBRARY is fake_host_vendor.cc compiled.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "context.h"
#include "host_memory.h"
#include "recorder.h"
#include "state.h"

using namespace stalloc;

#define EXPECT(condition) \
  if (!(condition)) std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), std::_Exit(1)

namespace {

void* (*g_device_buffer)(size_t);
void* (*g_scratch)(size_t);
void (*g_free)(void*);

void Load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT(library != nullptr);
  g_device_buffer = reinterpret_cast<void* (*)(size_t)>(dlsym(library, "fake_device_buffer"));
  g_scratch = reinterpret_cast<void* (*)(size_t)>(dlsym(library, "fake_scratch"));
  g_free = reinterpret_cast<void (*)(void*)>(dlsym(library, "fake_free"));

  EXPECT(!AttachHostMemory(dlopen("libc.so.6", RTLD_NOW)).empty());  // it exports what others import
  EXPECT(AttachHostMemory(library).empty());
  EXPECT(AttachHostMemory(library).empty());
  EXPECT(!HostMemoryIsServed());
  g_free(g_device_buffer(100));
  EXPECT(TheState().blocks.size() == 0);
  {
    Calibration calibration(kCalibrationBytes);
    g_free(g_scratch(99));
    g_free(g_device_buffer(kCalibrationBytes));
    EXPECT(calibration.Seen());
  }
  EXPECT(HostMemoryIsServed());
  EXPECT(MemoryProblem().empty());
  void* scratch = g_scratch(kCalibrationBytes);
  EXPECT(TheState().blocks.size() == 0);
  g_free(scratch);
  void* block = g_device_buffer(1000);
  EXPECT(TheState().blocks.size() == 1);
  EXPECT(TheState().unattributed.in_use() == 1000);
  g_free(block);
  EXPECT(TheState().unattributed.in_use() == 0);
}

// One thread calls, another one runs, as in XLA:CPU: every request is attributed to its launch.
void Pipeline(uint64_t fingerprint, uint32_t device, int steps) {
  State& state = TheState();
  Program* program = state.programs.Of(fingerprint);
  const std::vector<size_t> sizes{1000 + 16 * device, 32, 50'000};
  std::atomic_store(&program->sizes, std::make_shared<const std::vector<size_t>>(sizes));
  auto loaded = std::make_shared<const Loaded>(Loaded{program, {device}, {state.devices.Ledger(device)}, 1});
  std::mutex mutex;
  std::vector<int> calls;
  std::thread runner([&] {
    for (int step = 0; step < steps;) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (calls.empty()) continue;
        calls.pop_back();
      }
      std::vector<void*> blocks;
      for (size_t size : sizes) {
        blocks.push_back(g_device_buffer(size));
        std::memset(blocks.back(), step, size);
      }
      for (void* block : blocks) g_free(block);
      ++step;
    }
  });
  for (int step = 0; step < steps; ++step) {
    for (;;) {
      std::lock_guard<std::mutex> lock(mutex);
      if (calls.size() < 30) break;
    }
    auto launch = std::make_shared<Launch>(loaded, program->executions.fetch_add(1), HostAllocator());
    state.launches.Add(launch);
    std::lock_guard<std::mutex> lock(mutex);
    calls.push_back(step);
  }
  runner.join();
}

void Churn(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<void*> blocks;
  Context upload;
  upload.ledger = TheState().devices.Ledger(0);
  for (int i = 0; i < 20'000; ++i) {
    if (blocks.size() > 50 || (!blocks.empty() && random() % 2)) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      g_free(blocks.back());
      blocks.pop_back();
      continue;
    }
    Scope scope(&upload);  // so that nothing here is taken for a launch's
    blocks.push_back(random() % 4 ? g_device_buffer(1 + random() % 4096) : g_scratch(1 + random() % 4096));
  }
  for (void* block : blocks) g_free(block);
}

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count == 2);
  Load(arguments[1]);
  Recorder recorder(HostAllocator());
  recorder.Switch(true);
  ServeHostMemoryFrom(&recorder);
  void* from_recorder = g_device_buffer(64);
  ServeHostMemoryFrom(nullptr);
  g_free(from_recorder);  // goes back to where it came from
  Event events[4];
  EXPECT(recorder.Take(events, 4) == 2);
  EXPECT(events[0].address == events[1].address && events[0].bytes == 64);
  recorder.Switch(true);
  ServeHostMemoryFrom(&recorder);

  constexpr int kSteps = 2000;
  std::vector<std::thread> threads;
  for (uint32_t device = 1; device < 4; ++device) threads.emplace_back(Pipeline, 100 + device, device, kSteps);
  for (unsigned seed = 0; seed < 3; ++seed) threads.emplace_back(Churn, seed);
#if !defined(__SANITIZE_THREAD__)  // which does not follow forks of many threads
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      g_free(g_device_buffer(100));
      _exit(TheState().blocks.size() < 100'000 ? 5 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
  }
#endif
  for (std::thread& thread : threads) thread.join();

  const State& state = TheState();
  EXPECT(state.blocks.size() == 0);
  for (uint32_t device = 0; device < 4; ++device) EXPECT(state.devices.At(device)->in_use() == 0);
  std::vector<Event> all(2'000'000);
  all.resize(recorder.Take(all.data(), all.size()));
  std::vector<int> requests(4);
  for (const Event& event : all)
    if (event.program != 0) ++requests[event.device];
  for (uint32_t device = 1; device < 4; ++device) EXPECT(requests[device] == 3 * kSteps);
  EXPECT(state.launches.figures().lost == 0);
  std::puts("done");
}
