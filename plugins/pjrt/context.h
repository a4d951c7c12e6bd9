// What the calling thread is doing for which device, so that a request for memory below can be told whose it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "allocator.h"
#include "launches.h"
#include "ledger.h"

namespace stalloc {

// One device's share of an execution; or, with no launch, an upload or a copy to a device.
struct Context {
  std::shared_ptr<Launch> launch;
  size_t launch_device = 0;        // position among the launch's devices
  DeviceLedger* ledger = nullptr;  // null: not known
  uint32_t device = 0;
  bool waits = false;  // the launch still waits in its queue
};

// Makes a context the calling thread's for as long as this lives. They nest: a callback inside of an execution may
// upload, and that upload is no part of the execution. Null: requests are attributed as on a thread of the vendor's.
class Scope {
 public:
  explicit Scope(Context* context);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Context* before_;
};

// Whose a request of the calling thread is.
struct Request {
  Key key;
  DeviceLedger* ledger = nullptr;  // null: not known
  Allocator* allocator = nullptr;  // null: whoever serves now
};
Request Attribute(Launches& launches, size_t bytes);

}  // namespace stalloc
