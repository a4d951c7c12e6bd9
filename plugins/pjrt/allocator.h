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
  uint64_t ticket = 0;      // what `Begin` returned for this execution on this device; 0 outside of executions
};

// Any thread may call at any time; memory may be released by another thread than asked for it.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // An execution is about to be handed to a device; those of one device come in the order in which they will run.
  // Returns what the allocator wants to see in the keys of its requests.
  virtual uint64_t Begin(uint64_t program, uint64_t execution, uint32_t device) {
    (void)program, (void)execution, (void)device;
    return 0;
  }
  // Memory of at least `bytes`, or null when there is none.
  virtual void* Allocate(const Key& key, size_t bytes, size_t alignment) = 0;
  // Takes back what `Allocate` returned.
  virtual void Release(void* pointer) = 0;
};

}  // namespace stalloc
