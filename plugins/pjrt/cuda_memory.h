// Device memory of XLA:GPU, taken over below the vendor. No CUDA headers are needed: three functions of the driver.
//
// With the client option `allocator=cuda_async`, XLA:GPU asks the driver once per buffer, for exact sizes:
// cuMemAllocFromPoolAsync and cuMemFreeAsync. It finds both at run time with dlsym, so its calls of dlsym are led here,
// and those two names get functions of ours. With any other allocator the driver is asked for whole regions only, no
// upload is seen, and nothing is served.
#pragma once

#include <cstdint>
#include <string>

#include "allocator.h"

namespace stalloc {

// Redirects the library's calls of dlsym. To be done before the vendor looks for the driver, which it does when a
// client is created. Returns "", or what is in the way.
std::string AttachCudaMemory(void* library);

// How many buffers were asked for since then, by any thread. An upload that leaves it as it is was not seen.
uint64_t CudaRequests();

// Whether an upload has been seen, so that the requests are known to be device buffers.
bool CudaMemoryIsServed();
void SetCudaMemoryIsServed();

// Who serves requests of a stream from now on; null: the driver's pools, as without us. Memory that was freed on one
// stream may still be in use there when another one gets it, so only one stream is served, the one that asks first.
void ServeCudaMemoryFrom(Allocator* allocator);

}  // namespace stalloc
