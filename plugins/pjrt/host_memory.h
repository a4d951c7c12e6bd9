// Device memory of XLA:CPU, taken over below the vendor.
//
// Every device buffer of XLA:CPU (inputs, outputs, temporaries, copies) comes from posix_memalign and goes to free, in
// the vendor's library or in jaxlib's own. Other parts of these libraries use the same two functions, so the one place
// that allocates device buffers is found first: a buffer of an odd size is uploaded (`Calibration`), and where it is
// asked for is the place. Everything else goes on to the system as before.
#pragma once

#include <cstddef>
#include <string>

#include "allocator.h"

namespace stalloc {

// Redirects the library's calls, once per process: a second library is refused, the same one again is fine. Nothing is
// served before a calibration has succeeded. Returns "", or what is in the way.
std::string AttachHostMemory(void* library);

// While one lives, a request of the calling thread for exactly this many bytes is taken for a device buffer.
class Calibration {
 public:
  explicit Calibration(size_t bytes);
  ~Calibration();
  // Whether the request came, from this library.
  bool Seen() const;
};

// A size in bytes that no program asks for by chance.
inline constexpr size_t kCalibrationBytes = 1'234'567;

// Whether device buffers are counted and served here.
bool HostMemoryIsServed();

// Why not, or "".
std::string MemoryProblem();
void SetMemoryProblem(const std::string& problem);

// Who serves from now on; blocks that are out go back to where they came from. Null: the system.
void ServeHostMemoryFrom(Allocator* allocator);
Allocator* HostAllocator();

// Bytes of memory that this process may use: of the machine, or of its control group if that is less.
size_t HostMemoryLimit();

}  // namespace stalloc
