// What device memory comes from, whatever the device: the plugin asks, an arena or the system answers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stalloc {

// Which allocation this is. Sizes alone never say that: an upload of a parameter may be as large as a temporary.
struct Key {
  uint64_t program = 0;     // fingerprint of the executable; 0 outside of executions (uploads, copies)
  uint64_t execution = 0;   // how many executions of that program were begun before, over all its loaded copies
  uint32_t device = 0;      // position among the client's addressable devices
  uint32_t allocation = 0;  // position among the requests of this execution on this device
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Memory of at least `bytes`, or null when there is none. May be called by any thread at any time.
  virtual void* Allocate(const Key& key, size_t bytes, size_t alignment) = 0;
  // Takes back what `Allocate` returned, in any order and by any thread.
  virtual void Release(void* pointer) = 0;
};

}  // namespace stalloc
