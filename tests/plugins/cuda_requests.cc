// `cuda_requests VENDOR DRIVER`: requests of a fake vendor for device memory, served by a fake driver and by an arena.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "context.h"
#include "cuda_memory.h"
#include "state.h"

using namespace stalloc;

#define EXPECT(condition) \
  if (!(condition)) std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), std::_Exit(1)

struct Bump : Allocator {
  alignas(256) char memory[1 << 16];
  size_t used = 0;
  int released = 0;
  Key last;
  void* Allocate(const Key& key, size_t bytes, size_t alignment) override {
    used = (used + alignment - 1) / alignment * alignment;
    if (used + bytes > sizeof(memory)) return nullptr;
    last = key;
    used += bytes;
    return memory + used - bytes;
  }
  void Release(void*) override { ++released; }
};

template <class Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

int main(int, char** arguments) {
  void* vendor = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  void* driver = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
  EXPECT(vendor != nullptr && driver != nullptr);
  const int& allocations = *Find<int>(driver, "fake_driver_allocations");
  const int& frees = *Find<int>(driver, "fake_driver_frees");
  const int& synchronized = *Find<int>(driver, "fake_driver_synchronized");
  auto* allocate = Find<unsigned long long(size_t, void*)>(vendor, "fake_allocate");
  auto* release = Find<int(unsigned long long, void*)>(vendor, "fake_free");
  auto* find = Find<void*(const char*)>(vendor, "fake_find");
  Find<void(const char*)>(vendor, "fake_open")(arguments[2]);

  EXPECT(!AttachCudaMemory(driver).empty());  // it imports no dlsym
  EXPECT(AttachCudaMemory(vendor).empty());
  EXPECT(find("cuInit") == dlsym(driver, "cuInit"));  // everything else is the driver's
  EXPECT(find("cuNoSuchFunction") == nullptr);
  EXPECT(find("cuMemFreeAsync") != dlsym(driver, "cuMemFreeAsync"));

  // By default the driver serves, and all is counted.
  int one, two;
  State& state = TheState();
  unsigned long long pointer = allocate(1000, &one);
  EXPECT(pointer != 0 && allocations == 1 && CudaRequests() == 1);
  EXPECT(state.unattributed.in_use() == 1000 && state.blocks.size() == 1);
  EXPECT(release(pointer, &one) == 0 && frees == 1);
  EXPECT(state.unattributed.in_use() == 0 && state.blocks.size() == 0);
  EXPECT(allocate(1ull << 41, &one) == 0 && state.unattributed.in_use() == 0);

  // An arena serves one stream, with keys; others go on to the driver.
  Bump arena;
  ServeCudaMemoryFrom(&arena);
  Program* program = state.programs.Of(77);
  auto loaded = std::make_shared<const Loaded>(Loaded{program, {3}, {state.devices.Ledger(3)}, 1});
  Context context;
  context.launch = std::make_shared<Launch>(loaded, 5, &arena);
  const int before = allocations;
  unsigned long long first, second;
  {
    Scope scope(&context);
    first = allocate(300, &one);
    second = allocate(400, &one);
  }
  EXPECT(allocations == before && second == first + 512);
  EXPECT(arena.last.program == 77 && arena.last.execution == 5 && arena.last.device == 3 && arena.last.allocation == 1);
  EXPECT(state.devices.At(3)->in_use() == 700);
  pointer = allocate(100, &two);
  EXPECT(allocations == before + 1);
  ServeCudaMemoryFrom(nullptr);
  EXPECT(release(pointer, &two) == 0 && frees == 2);
  EXPECT(release(first, &one) == 0 && arena.released == 1 && synchronized == 0);
  EXPECT(release(second, &two) == 0 && arena.released == 2 && synchronized == 1);  // another stream: waited for
  EXPECT(frees == 2 && state.devices.At(3)->in_use() == 0);

  ServeCudaMemoryFrom(&arena);
  EXPECT(allocate(1 << 20, &one) == 0);  // out of memory, as the driver says it
  std::puts("done");
}
