// A copy of the vendor's table in which some slots lead here. What is newer than this plugin, and every extension, is
// the vendor's, untouched.
#pragma once

#include <cstdlib>
#include <cstring>

#include "abi.h"
#include "vendor.h"

namespace stalloc {

class Table {
 public:
  // Copies as many bytes as the vendor's table says it has. The copy lives as long as the process: callers keep it.
  explicit Table(const abi::Api* vendor) : api_(static_cast<abi::Api*>(std::malloc(vendor->struct_size))) {
    std::memcpy(api_, vendor, vendor->struct_size);
  }

  // Leads a call here, if the vendor has it at all.
  template <class Args>
  void Override(abi::Error* (*call)(Args*)) {
    if (Has<Args>(api_)) api_->slots[Args::kSlot] = reinterpret_cast<abi::Slot>(call);
  }

  const abi::Api* api() const { return api_; }

 private:
  abi::Api* api_;
};

}  // namespace stalloc
