// Finds out where a vendor allocates device buffers, with a client of its own.
#pragma once

#include "abi.h"

namespace stalloc {

// Attaches the vendor's host memory and uploads one buffer to the client's first device. Where that shows nothing, the
// vendor stays untouched and `HostMemoryProblem` says why. Does nothing once host memory is served.
void CalibrateHostMemory(abi::Client* client, abi::Device* device);

}  // namespace stalloc
