#include "launches.h"

#include <algorithm>
#include <utility>

#include "events.h"
#include "state.h"

namespace stalloc {
namespace {

// 0: over several devices.
size_t QueueOf(const Loaded& loaded) { return loaded.devices.size() == 1 ? 1 + loaded.devices[0] : 0; }

}  // namespace

Launch::Launch(std::shared_ptr<const Loaded> loaded, uint64_t execution, Allocator* allocator)
    : loaded_(std::move(loaded)),
      execution_(execution),
      allocator_(allocator),
      sizes_(std::atomic_load(&loaded_->program->sizes)),
      asked_(loaded_->devices.size()) {
  for (uint32_t device : loaded_->devices)
    tickets_.push_back(allocator->Begin(loaded_->program->fingerprint, execution, device));
}

Key Launch::NextKey(size_t device, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<size_t>& asked = asked_[device];
  const Key key{loaded_->program->fingerprint, execution_, loaded_->devices[device],
                static_cast<uint32_t>(asked.size()), tickets_[device]};
  asked.push_back(bytes);
  return key;
}

bool Launch::Expects(size_t device, size_t bytes) const {
  if (sizes_ == nullptr) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t next = asked_[device].size();
  return next < sizes_->size() && (*sizes_)[next] == bytes;
}

void Launch::EndHere(size_t device) {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t count = asked_[device].size();
  const auto known = std::atomic_load(&loaded_->program->sizes);
  if (known == nullptr || known->size() <= count) return;
  auto shorter = std::make_shared<const std::vector<size_t>>(known->begin(), known->begin() + count);
  std::atomic_store(&loaded_->program->sizes, std::shared_ptr<const std::vector<size_t>>(std::move(shorter)));
}

bool Launch::IsComplete(size_t device) const {
  if (sizes_ == nullptr) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  return asked_[device].size() >= sizes_->size();
}

void Launch::SetEnds(std::vector<abi::Event*> ends) {
  std::lock_guard<std::mutex> lock(mutex_);
  ends_ = std::move(ends);
}

void Launch::SetOver() {
  std::lock_guard<std::mutex> lock(mutex_);
  over_ = true;
}

bool Launch::HasEnded(size_t device) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (over_) return true;
  return device < ends_.size() && IsReady(TheState().vendor.api, ends_[device]);
}

Launch::~Launch() {
  for (abi::Event* end : ends_) Destroy(TheState().vendor.api, end);
}

std::shared_ptr<const std::vector<size_t>> Launch::Learnt() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (asked_.empty()) return nullptr;
  for (const auto& asked : asked_)
    if (asked != asked_[0]) return nullptr;
  return std::make_shared<const std::vector<size_t>>(asked_[0]);
}

void Launches::Add(const std::shared_ptr<Launch>& launch) {
  if (launch->sizes() != nullptr && launch->sizes()->empty()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t index = QueueOf(launch->loaded());
  if (index >= queues_.size()) queues_.resize(index + 1);
  auto& queue = queues_[index];
  queue.push_back(launch);
  if (queue.size() > kUnderWay) {
    // What was learnt about that program cannot be right.
    std::atomic_store(&queue.front()->loaded().program->sizes, std::shared_ptr<const std::vector<size_t>>());
    queue.pop_front();
    ++lost_;
  }
}

void Launches::Remove(const Launch* launch) {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t index = QueueOf(launch->loaded());
  if (index >= queues_.size()) return;
  auto& queue = queues_[index];
  queue.erase(std::remove_if(queue.begin(), queue.end(), [launch](const auto& other) { return other.get() == launch; }),
              queue.end());
}

std::shared_ptr<Launch> Launches::Begin(size_t bytes, size_t* device) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& queue : queues_) {
    // A program that asks for nothing is over before anyone knows.
    while (!queue.empty() && queue.front()->sizes() == nullptr && queue.front()->HasEnded(queue.front()->begun_))
      queue.pop_front();
    if (queue.empty()) continue;
    std::shared_ptr<Launch> launch = queue.front();
    if (launch->sizes() != nullptr && launch->sizes()->front() != bytes) continue;
    *device = launch->begun_++;
    if (launch->begun_ == launch->devices()) queue.pop_front();
    return launch;
  }
  return nullptr;
}

Launches::Figures Launches::figures() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {lost_};
}

}  // namespace stalloc
