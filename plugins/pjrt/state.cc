#include "state.h"

namespace stalloc {

void Devices::Add(abi::Device* const* devices, size_t count) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  while (ledgers_.size() < count) ledgers_.push_back(new DeviceLedger);
  for (size_t i = 0; i < count; ++i) devices_[devices[i]] = {static_cast<uint32_t>(i), ledgers_[i]};
}

void Devices::Remove(abi::Device* const* devices, size_t count) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  for (size_t i = 0; i < count; ++i) devices_.erase(devices[i]);
}

Devices::Entry Devices::Find(abi::Device* device) const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto found = devices_.find(device);
  return found == devices_.end() ? Entry{} : found->second;
}

DeviceLedger* Devices::Ledger(uint32_t position) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  while (ledgers_.size() <= position) ledgers_.push_back(new DeviceLedger);
  return ledgers_[position];
}

const DeviceLedger* Devices::At(uint32_t position) const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  return position < ledgers_.size() ? ledgers_[position] : nullptr;
}

State& TheState() {
  static State* const state = new State;
  return *state;
}

}  // namespace stalloc
