#include "calibrate.h"

#include <vector>

#include "events.h"
#include "host_memory.h"
#include "state.h"

namespace stalloc {
void CalibrateHostMemory(abi::Client* client, abi::Device* device) {
  const Vendor& vendor = TheState().vendor;
  if (HostMemoryIsServed() || !AttachHostMemory(vendor.library).empty()) return;
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
  {
    Calibration calibration(kCalibrationBytes);
    if (!Has<abi::ClientBufferFromHostBufferArgs>(vendor.api)) return;
    if (abi::Error* error = Call(vendor.api, &upload)) {
      SetHostMemoryProblem("the upload that shows where device buffers are allocated failed: " +
                           Consume(vendor.api, error));
      return;
    }
    if (!calibration.Seen())
      SetHostMemoryProblem("an upload was not seen to allocate: this vendor's memory is not the host's");
  }
  Await(vendor.api, upload.done_with_host_buffer);
  Destroy(vendor.api, upload.done_with_host_buffer);
  auto destroy = Fresh<abi::BufferDestroyArgs>();
  destroy.buffer = upload.buffer;
  Try(vendor.api, &destroy);
}

}  // namespace stalloc
