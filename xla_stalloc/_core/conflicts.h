// Which placed buffers overwrite each other? In O(n log n), for checking what packers return: shares no code with them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

namespace xla_stalloc {

struct PlacedBuffers {
  std::vector<std::int64_t> lower, upper;  // of each buffer: live from the one until just before the other
  std::vector<std::int64_t> begin, end;    // of each buffer: its bytes; none if they are equal
  std::vector<std::int64_t> owner;  // buffers of one owner may overlap; all those of an owner begin at one offset
  // XLA's rule for what is read in the moment in which the other is written: a buffer that is born when another dies
  // may have exactly the same bytes, but not only some of them.
  bool same_slice_when_touching = false;
};

using Conflict = std::pair<std::int64_t, std::int64_t>;  // of buffers; both -1 if there is none

Conflict first_conflict(const PlacedBuffers& buffers);

void register_conflicts(nanobind::module_& m);

}  // namespace xla_stalloc
