// A library that allocates as XLA:CPU does: device buffers at one place, scratch of its own at another.
#include <cstdlib>

extern "C" __attribute__((noinline)) void* fake_device_buffer(size_t bytes) {
  void* pointer = nullptr;
  return posix_memalign(&pointer, 64, bytes) == 0 ? pointer : nullptr;
}

extern "C" __attribute__((noinline)) void* fake_scratch(size_t bytes) {
  void* pointer = nullptr;
  if (posix_memalign(&pointer, 64, bytes) != 0) return nullptr;
  *static_cast<volatile char*>(pointer) = 1;  // no tail call: the place of a call is its return address
  return pointer;
}

extern "C" void fake_free(void* pointer) { free(pointer); }
