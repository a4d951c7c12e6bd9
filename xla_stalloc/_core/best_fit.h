// XLA's heap: items by decreasing size, or by decreasing duration, each into the smallest hole that takes it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "graph.h"
#include "stop.h"

namespace xla_stalloc {

// Items that keep one address over several lives. Times are inclusive at both ends.
struct Heap {
  std::vector<std::int64_t> sizes;   // of each item, in bytes
  Csr lives;                         // of each item: rows of `starts` and `ends`, its own life first
  std::vector<std::int64_t> starts, ends;
  std::vector<std::int64_t> ids;     // of each item: breaks ties
  std::int64_t alignment = 1;        // of every offset, in bytes
};

struct Placement {
  std::int64_t height = 0;
  std::vector<std::int64_t> offsets;
};

// What XLA's buffer assignment computes: the lower of the spatial and the temporal order, the spatial one on a tie.
// It may give up on heaps of `limit` bytes or more, or when told to stop: the height is then at least the limit, the
// offsets mean nothing.
Placement best_fit(const Heap& heap, std::int64_t limit = std::numeric_limits<std::int64_t>::max(),
                   Stop* stop = nullptr);

void register_best_fit(nanobind::module_& m);

}  // namespace xla_stalloc
