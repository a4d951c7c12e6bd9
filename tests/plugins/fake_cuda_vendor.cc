// Finds the driver as XLA:GPU does: dlopen, and dlsym for each function.
#include <dlfcn.h>

#include <cstddef>

static void* g_driver;

extern "C" {
void fake_open(const char* driver) { g_driver = dlopen(driver, RTLD_NOW | RTLD_LOCAL); }

void* fake_find(const char* name) { return dlsym(g_driver, name); }

unsigned long long fake_allocate(size_t bytes, void* stream) {
  unsigned long long pointer = 0;
  auto allocate = reinterpret_cast<int (*)(unsigned long long*, size_t, void*, void*)>(fake_find("cuMemAllocFromPoolAsync"));
  return allocate(&pointer, bytes, nullptr, stream) == 0 ? pointer : 0;
}

int fake_free(unsigned long long pointer, void* stream) {
  return reinterpret_cast<int (*)(unsigned long long, void*)>(fake_find("cuMemFreeAsync"))(pointer, stream);
}
}
