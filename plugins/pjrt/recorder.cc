#include "recorder.h"

#include <algorithm>

namespace stalloc {

uint64_t Recorder::Begin(uint64_t program, uint64_t execution, uint32_t device) {
  return source_->Begin(program, execution, device);
}

void* Recorder::Allocate(const Key& key, size_t bytes, size_t alignment) {
  void* pointer = source_->Allocate(key, bytes, alignment);
  std::lock_guard<std::mutex> lock(mutex_);
  if (on_ && pointer != nullptr)
    events_.push_back({key.program, key.execution, key.device, key.allocation, reinterpret_cast<uintptr_t>(pointer), bytes});
  return pointer;
}

void Recorder::Release(void* pointer) {
  {
    // Before the memory goes back, so that no later request for it is noted earlier.
    std::lock_guard<std::mutex> lock(mutex_);
    if (on_) events_.push_back({0, 0, 0, 0, reinterpret_cast<uintptr_t>(pointer), 0});
  }
  source_->Release(pointer);
}

size_t Recorder::Take(Event* events, size_t limit) {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t count = std::min(limit, events_.size());
  std::copy_n(events_.begin(), count, events);
  events_.erase(events_.begin(), events_.begin() + count);
  return count;
}

void Recorder::Switch(bool on) {
  std::lock_guard<std::mutex> lock(mutex_);
  on_ = on;
  events_.clear();
}

}  // namespace stalloc
