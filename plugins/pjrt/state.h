// What this process knows: one of each, never destroyed, since other threads go on while the process ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi.h"
#include "launches.h"
#include "ledger.h"
#include "live_blocks.h"
#include "programs.h"
#include "vendor.h"

namespace stalloc {

// Devices by the vendor's handle.
class Devices {
 public:
  struct Entry {
    uint32_t position = 0;  // among the addressable devices of its client
    DeviceLedger* ledger = nullptr;
  };
  // The ledgers outlive their client: a block may be freed after its client is.
  void Add(abi::Device* const* devices, size_t count);
  void Remove(abi::Device* const* devices, size_t count);
  // Without a ledger for a device that is not known.
  Entry Find(abi::Device* device) const;
  // The ledger at a position, made if it is new: for devices of a client that is not ours.
  DeviceLedger* Ledger(uint32_t position);
  // By position; null where no client ever had that many devices.
  const DeviceLedger* At(uint32_t position) const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<abi::Device*, Entry> devices_;
  std::vector<DeviceLedger*> ledgers_;
};

struct Counters {
  std::atomic<uint64_t> clients{0};
  std::atomic<uint64_t> compiles{0};
  std::atomic<uint64_t> loads{0};
  std::atomic<uint64_t> executions{0};
  std::atomic<uint64_t> uploads{0};
  std::atomic<uint64_t> buffers_destroyed{0};
};

struct State {
  Vendor vendor;
  Counters counters;
  Devices devices;
  Programs programs;
  Launches launches;
  LiveBlocks blocks;
  DeviceLedger unattributed;  // memory whose device is not known
};

State& TheState();

}  // namespace stalloc
