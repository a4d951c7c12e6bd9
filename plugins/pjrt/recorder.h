// Every request for device memory and every release, in order, as long as somebody wants to know.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "allocator.h"

namespace stalloc {

struct Event {
  uint64_t program, execution, device, allocation;  // of the key; zero for a release
  uint64_t address, bytes;                          // bytes: 0 for a release
};

class Recorder : public Allocator {
 public:
  // Serves from another allocator.
  explicit Recorder(Allocator* source) : source_(source) {}

  uint64_t Begin(uint64_t program, uint64_t execution, uint32_t device) override;
  void* Allocate(const Key& key, size_t bytes, size_t alignment) override;
  void Release(void* pointer) override;

  // Takes out up to `limit` events, the oldest first.
  size_t Take(Event* events, size_t limit);
  // Forgets what is there; while off, nothing is noted.
  void Switch(bool on);

 private:
  Allocator* const source_;
  std::mutex mutex_;
  bool on_ = false;
  std::vector<Event> events_;
};

}  // namespace stalloc
