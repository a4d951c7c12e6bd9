#include "host_memory.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "context.h"
#include "got.h"
#include "state.h"
#include "system_memory.h"

namespace stalloc {
namespace {

SystemMemory g_system;
std::atomic<Allocator*> g_allocator{&g_system};
// Where device buffers are asked for; null until it is known.
std::atomic<void*> g_place{nullptr};
std::atomic<bool> g_is_child{false};
std::mutex g_mutex;
void* g_library = nullptr;  // guarded by g_mutex
std::string* g_problem = new std::string("no vendor of XLA:CPU is attached");  // guarded by g_mutex

thread_local size_t t_expected_bytes = 0;
thread_local void* t_place = nullptr;

[[noreturn]] void Stop(const char* what, const void* pointer, size_t bytes) {
  std::fprintf(stderr, "xla_stalloc: %s: %p, %zu bytes. The process stops before it computes with wrong memory.\n", what,
               pointer, bytes);
  std::abort();
}

void* Serve(size_t bytes, size_t alignment) {
  State& state = TheState();
  const Request request = Attribute(state.launches, bytes);
  DeviceLedger* ledger = request.ledger == nullptr ? &state.unattributed : request.ledger;
  Allocator* allocator = request.allocator == nullptr ? HostAllocator() : request.allocator;
  void* pointer = allocator->Allocate(request.key, bytes, alignment);
  if (pointer == nullptr) return nullptr;
  ledger->Add(bytes);
  Block there;
  while (!state.blocks.Insert(pointer, {bytes, allocator, ledger}, &there)) {
    // The system never gives out an address twice, so that block was freed by somebody whose calls do not come here.
    if (there.allocator != &g_system || !state.blocks.Remove(pointer, &there))
      Stop("an address was given out twice", pointer, bytes);
    there.ledger->Subtract(there.bytes);
  }
  return pointer;
}

// What the vendor calls for posix_memalign, from any of its parts.
int HookedAllocate(void** pointer, size_t alignment, size_t bytes) {
  void* const place = __builtin_return_address(0);
  if (t_expected_bytes != 0 && bytes == t_expected_bytes) t_place = place;
  if (place != g_place.load(std::memory_order_relaxed)) return posix_memalign(pointer, alignment, bytes);
  void* served = Serve(bytes, alignment);
  if (served == nullptr) return ENOMEM;
  *pointer = served;
  return 0;
}

// What the vendor calls for free.
void HookedFree(void* pointer) {
  Block block;
  if (pointer == nullptr || !TheState().blocks.Remove(pointer, &block)) return std::free(pointer);
  block.ledger->Subtract(block.bytes);
  if (block.allocator != &g_system && g_is_child.load(std::memory_order_relaxed)) return;
  block.allocator->Release(pointer);
}

size_t ReadLimit(const char* path) {
  std::ifstream file(path);
  size_t bytes = 0;
  return file >> bytes ? bytes : 0;
}

}  // namespace

std::string AttachHostMemory(void* library) {
  std::lock_guard<std::mutex> lock(g_mutex);
  if (g_library == library) return "";
  if (g_library != nullptr) return "another library of this process is attached already";
  const Redirected redirected = RedirectCalls(library, {{"posix_memalign", reinterpret_cast<void*>(&HookedAllocate)},
                                                        {"free", reinterpret_cast<void*>(&HookedFree)}});
  if (redirected.slots == 0) return *g_problem = redirected.problem;
  g_library = library;
  *g_problem = "no upload has shown yet where device buffers are allocated";
  // A child has one thread and a copy of everything. It gets memory from the system, and what others serve is not given
  // back: their locks may be held by threads that the child does not have.
  pthread_atfork([] { TheState().blocks.LockAll(); }, [] { TheState().blocks.UnlockAll(); },
                 [] {
                   TheState().blocks.UnlockAll();
                   g_is_child = true;
                   g_place = nullptr;
                 });
  return "";
}

Calibration::Calibration(size_t bytes) {
  t_place = nullptr;
  t_expected_bytes = bytes;
}

Calibration::~Calibration() {
  t_expected_bytes = 0;
  if (t_place == nullptr) return;
  std::lock_guard<std::mutex> lock(g_mutex);
  void* none = nullptr;
  if (g_place.compare_exchange_strong(none, t_place) || none == t_place) g_problem->clear();
}

bool Calibration::Seen() const { return t_place != nullptr; }

bool HostMemoryIsServed() { return g_place.load(std::memory_order_relaxed) != nullptr; }

std::string MemoryProblem() {
  std::lock_guard<std::mutex> lock(g_mutex);
  return *g_problem;
}

void SetMemoryProblem(const std::string& problem) {
  std::lock_guard<std::mutex> lock(g_mutex);
  *g_problem = problem;
}

Allocator* HostAllocator() { return g_allocator.load(std::memory_order_acquire); }

void ServeHostMemoryFrom(Allocator* allocator) {
  g_allocator.store(allocator == nullptr ? &g_system : allocator, std::memory_order_release);
}

size_t HostMemoryLimit() {
  const size_t machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (const size_t limit = ReadLimit(path); limit != 0 && limit < machine) return limit;
  return machine;
}

}  // namespace stalloc
