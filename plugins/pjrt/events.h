// Events of the vendor's that were handed out to us.
#pragma once

#include "vendor.h"

namespace stalloc {

inline bool IsReady(const abi::Api* api, abi::Event* event) {
  auto args = Fresh<abi::EventIsReadyArgs>();
  args.event = event;
  return Try(api, &args) && args.is_ready;
}

inline void Await(const abi::Api* api, abi::Event* event) {
  auto args = Fresh<abi::EventAwaitArgs>();
  args.event = event;
  if (event != nullptr) Try(api, &args);
}

inline void Destroy(const abi::Api* api, abi::Event* event) {
  auto args = Fresh<abi::EventDestroyArgs>();
  args.event = event;
  if (event != nullptr) Try(api, &args);
}

}  // namespace stalloc
