#include "calibrate.h"

#include <string>
#include <vector>

#include "cuda_memory.h"
#include "events.h"
#include "host_memory.h"
#include "state.h"

namespace stalloc {
namespace {
// Uploads one buffer and destroys it. Returns "", or what went wrong.
std::string Upload(abi::Client* client, abi::Device* device) {
  const abi::Api* api = TheState().vendor.api;
  if (!Has<abi::ClientBufferFromHostBufferArgs>(api)) return "the vendor has no uploads";
  const std::vector<char> data(kCalibrationBytes);
  const int64_t size = kCalibrationBytes;
  auto upload = Fresh<abi::ClientBufferFromHostBufferArgs>();
  upload.client = client;
  upload.data = data.data();
  upload.type = abi::kBytes;
  upload.dims = &size;
  upload.num_dims = 1;
  upload.host_buffer_semantics = abi::kImmutableOnlyDuringCall;  // no sharing of `data`: the vendor has to allocate
  upload.device = device;
  if (abi::Error* error = Call(api, &upload))
    return "the upload that shows where device buffers are allocated failed: " + Consume(api, error);
  Await(api, upload.done_with_host_buffer);
  Destroy(api, upload.done_with_host_buffer);
  auto destroy = Fresh<abi::BufferDestroyArgs>();
  destroy.buffer = upload.buffer;
  Try(api, &destroy);
  return "";
}

void CalibrateHost(abi::Client* client, abi::Device* device) {
  if (HostMemoryIsServed() || !AttachHostMemory(TheState().vendor.library).empty()) return;
  Calibration calibration(kCalibrationBytes);
  std::string problem = Upload(client, device);
  if (problem.empty() && !calibration.Seen())
    problem = "an upload was not seen to allocate: this vendor's memory is not the host's";
  if (!problem.empty()) SetMemoryProblem(problem);
}

void CalibrateCuda(abi::Client* client, abi::Device* device) {
  if (CudaMemoryIsServed()) return;
  const uint64_t before = CudaRequests();
  std::string problem = Upload(client, device);
  if (problem.empty() && CudaRequests() == before)
    problem = "an upload was not seen to allocate: the client's allocator is another one than cuda_async";
  if (problem.empty()) SetCudaMemoryIsServed();
  SetMemoryProblem(problem);
}

}  // namespace

void CalibrateMemory(abi::Client* client, abi::Device* device) {
  if (TheState().vendor.is_cuda)
    CalibrateCuda(client, device);
  else
    CalibrateHost(client, device);
}

bool MemoryIsServed() { return HostMemoryIsServed() || CudaMemoryIsServed(); }

}  // namespace stalloc
