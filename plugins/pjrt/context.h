// What the calling thread is doing for which device, so that a request for memory below can be told whose it is.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator.h"
#include "ledger.h"

namespace stalloc {

// One device's share of one execution; or, with no program, an upload or a copy to a device.
struct Context {
  uint64_t program = 0;
  uint64_t execution = 0;
  uint32_t device = 0;
  DeviceLedger* ledger = nullptr;
  uint32_t requests = 0;

  Key NextKey() { return {program, execution, device, requests++}; }
};

// Null on a thread that does nothing that is known here.
Context* Current();

// Makes a context the calling thread's for as long as this lives. They nest: a callback inside of an execution may
// upload, and that upload is no part of the execution.
class Scope {
 public:
  explicit Scope(Context* context);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Context* before_;
};

}  // namespace stalloc
