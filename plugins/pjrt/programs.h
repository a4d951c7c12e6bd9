// The executables that are loaded, and how often each program was executed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "abi.h"
#include "ledger.h"

namespace stalloc {

class Launch;

// All loaded copies of one program share it, so that no two executions get the same number.
struct Program {
  uint64_t fingerprint = 0;
  std::atomic<uint64_t> executions{0};
  // Bytes of each request that one execution makes on one device; null until they are known (std::atomic_load).
  std::shared_ptr<const std::vector<size_t>> sizes;
  std::mutex mutex;
  std::shared_ptr<Launch> learning;  // guarded by mutex; the execution that they are being learnt from (learning.h)
};

struct Loaded {
  Program* program = nullptr;         // never freed: a process has few programs
  std::vector<uint32_t> devices;      // positions among the client's addressable devices
  std::vector<DeviceLedger*> ledgers;  // one per device
  size_t outputs = 0;                  // per device
};

class Programs {
 public:
  // `loaded` without its program, which is the one with the fingerprint.
  void Add(abi::LoadedExecutable* executable, uint64_t fingerprint, Loaded loaded);
  // The program with a fingerprint, made if it is new.
  Program* Of(uint64_t fingerprint);
  void Remove(abi::LoadedExecutable* executable);
  // Null for an executable that came in some way that is not known here.
  std::shared_ptr<const Loaded> Find(abi::LoadedExecutable* executable) const;

  struct Figures {
    uint64_t programs, loaded, executions;
  };
  Figures figures() const;

 private:
  Program* OfLocked(uint64_t fingerprint);

  mutable std::shared_mutex mutex_;
  std::unordered_map<abi::LoadedExecutable*, std::shared_ptr<const Loaded>> loaded_;
  std::unordered_map<uint64_t, std::unique_ptr<Program>> programs_;
};

// 64 bits that tell texts apart (FNV-1a over 8 bytes at a time, with a finish); never 0, which stands for "none".
uint64_t Fingerprint(std::string_view text, uint64_t seed = 0);

}  // namespace stalloc
