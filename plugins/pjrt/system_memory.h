// The system's own memory: what a vendor gets where no arena is in place.
#pragma once

#include <cstdlib>

#include "allocator.h"

namespace stalloc {

class SystemMemory : public Allocator {
 public:
  void* Allocate(const Key&, size_t bytes, size_t alignment) override {
    void* pointer = nullptr;
    return posix_memalign(&pointer, alignment, bytes) == 0 ? pointer : nullptr;
  }
  void Release(void* pointer) override { std::free(pointer); }
};

}  // namespace stalloc
