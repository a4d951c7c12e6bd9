// Finds out where a vendor allocates device buffers, with a client of its own.
#pragma once

#include "abi.h"

namespace stalloc {

// Attaches the vendor's memory and uploads one buffer to the client's first device. Where that shows nothing, the vendor
// stays untouched and `MemoryProblem` says why. Does nothing once memory is served.
void CalibrateMemory(abi::Client* client, abi::Device* device);

// Whether requests for device memory come here.
bool MemoryIsServed();

}  // namespace stalloc
