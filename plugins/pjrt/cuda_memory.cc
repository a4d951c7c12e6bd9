#include "cuda_memory.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "context.h"
#include "got.h"
#include "state.h"

namespace stalloc {
namespace {

// Of cuda.h: CUresult, CUdeviceptr, CUmemoryPool, CUstream.
using Result = int;
using DevicePointer = unsigned long long;
using Pool = void*;
using Stream = void*;
constexpr Result kSuccess = 0, kOutOfMemory = 2;

std::atomic<Result (*)(DevicePointer*, size_t, Pool, Stream)> g_allocate{nullptr};
std::atomic<Result (*)(DevicePointer, Stream)> g_free{nullptr};
std::atomic<Result (*)(Stream)> g_synchronize{nullptr};
std::atomic<Allocator*> g_allocator{nullptr};
std::atomic<Stream> g_stream{nullptr};
std::atomic<bool> g_stream_is_known{false};
std::atomic<uint64_t> g_requests{0};
std::atomic<bool> g_is_served{false};

// The driver's pools as an allocator never gets to serve itself; blocks that it serves have none.
constexpr Allocator* kDriver = nullptr;

bool IsServedStream(Stream stream) {
  bool known = false;
  if (g_stream_is_known.compare_exchange_strong(known, true)) g_stream.store(stream);
  return g_stream.load() == stream;
}

Result Allocate(DevicePointer* pointer, size_t bytes, Pool pool, Stream stream) {
  g_requests.fetch_add(1, std::memory_order_relaxed);
  State& state = TheState();
  const Request request = Attribute(state.launches, bytes);
  DeviceLedger* ledger = request.ledger == nullptr ? &state.unattributed : request.ledger;
  Allocator* allocator = g_allocator.load(std::memory_order_acquire);
  if (allocator != kDriver && IsServedStream(stream)) {
    void* served = allocator->Allocate(request.key, bytes, 256);  // what cuMemAlloc aligns to
    if (served == nullptr) return kOutOfMemory;
    *pointer = reinterpret_cast<DevicePointer>(served);
  } else {
    allocator = kDriver;
    const Result result = g_allocate.load(std::memory_order_acquire)(pointer, bytes, pool, stream);
    if (result != kSuccess) return result;
  }
  Block there;
  ledger->Add(bytes);
  while (!state.blocks.Insert(reinterpret_cast<void*>(*pointer), {bytes, allocator, ledger}, &there)) {
    // The driver may reuse what was freed behind our back; an arena may not.
    if (there.allocator != kDriver || !state.blocks.Remove(reinterpret_cast<void*>(*pointer), &there)) {
      std::fprintf(stderr, "xla_stalloc: device address %#llx was given out twice\n", *pointer);
      std::abort();
    }
    there.ledger->Subtract(there.bytes);
  }
  return kSuccess;
}

Result Free(DevicePointer pointer, Stream stream) {
  Block block;
  if (!TheState().blocks.Remove(reinterpret_cast<void*>(pointer), &block))
    return g_free.load(std::memory_order_acquire)(pointer, stream);
  block.ledger->Subtract(block.bytes);
  if (block.allocator == kDriver) return g_free.load(std::memory_order_acquire)(pointer, stream);
  // Freed on another stream than it was asked for on: once that stream has come so far, anyone may have it.
  if (g_stream.load() != stream)
    if (auto synchronize = g_synchronize.load(std::memory_order_acquire))
      if (const Result result = synchronize(stream); result != kSuccess) return result;
  block.allocator->Release(reinterpret_cast<void*>(pointer));
  return kSuccess;
}

// What the vendor calls for dlsym.
void* FindSymbol(void* handle, const char* name) {
  void* found = dlsym(handle, name);
  if (found == nullptr || name == nullptr) return found;
  if (std::strcmp(name, "cuMemAllocFromPoolAsync") == 0) {
    g_allocate.store(reinterpret_cast<decltype(g_allocate.load())>(found), std::memory_order_release);
    return reinterpret_cast<void*>(&Allocate);
  }
  if (std::strcmp(name, "cuMemFreeAsync") == 0) {
    g_free.store(reinterpret_cast<decltype(g_free.load())>(found), std::memory_order_release);
    void* synchronize = dlsym(handle, "cuStreamSynchronize");
    g_synchronize.store(reinterpret_cast<decltype(g_synchronize.load())>(synchronize), std::memory_order_release);
    return reinterpret_cast<void*>(&Free);
  }
  return found;
}

}  // namespace

std::string AttachCudaMemory(void* library) {
  return RedirectCalls(library, {{"dlsym", reinterpret_cast<void*>(&FindSymbol)}}).problem;
}

uint64_t CudaRequests() { return g_requests.load(std::memory_order_relaxed); }

bool CudaMemoryIsServed() { return g_is_served.load(std::memory_order_relaxed); }

void SetCudaMemoryIsServed() { g_is_served.store(true, std::memory_order_relaxed); }

void ServeCudaMemoryFrom(Allocator* allocator) { g_allocator.store(allocator, std::memory_order_release); }

}  // namespace stalloc
