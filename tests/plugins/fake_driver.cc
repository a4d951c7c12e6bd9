// A CUDA driver of three functions over the host's memory, which counts the calls that reach it.
#include <cstdlib>

extern "C" {
int fake_driver_allocations = 0, fake_driver_frees = 0, fake_driver_synchronized = 0;

int cuMemAllocFromPoolAsync(unsigned long long* pointer, size_t bytes, void*, void*) {
  ++fake_driver_allocations;
  if (bytes > 1ull << 40) return 2;
  *pointer = reinterpret_cast<unsigned long long>(std::malloc(bytes));
  return 0;
}

int cuMemFreeAsync(unsigned long long pointer, void*) {
  ++fake_driver_frees;
  std::free(reinterpret_cast<void*>(pointer));
  return 0;
}

int cuStreamSynchronize(void*) { return ++fake_driver_synchronized, 0; }

int cuInit(unsigned) { return 42; }
}
