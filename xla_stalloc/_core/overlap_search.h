// Annealed local search for orders that hide communication behind computation, within a limit of memory.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.h"
#include "streams.h"

namespace xla_stalloc {

struct OverlapOptions {
  std::int64_t limit;            // bytes that may be live at once
  std::int64_t moves = 300'000;  // tried, not accepted
  int window = 1'000;            // positions that one move may disturb at most
  std::uint64_t seed = 0;
};

// One guess of how long everything takes, and how much it counts.
struct Scenario {
  const Streams* streams;  // equal in which node waits for which
  std::int64_t weight;
};

// The order with the least exposed communication found, summed over the scenarios, of which there is at least one. Where the start keeps the limit, so does the result; elsewhere
// it is no further above it. The same arguments give the same order on every host.
Order overlap_search(const Graph& graph, const std::vector<Scenario>& scenarios, Order start,
                     const OverlapOptions& options);

void register_overlap_search(nanobind::module_& m);

}  // namespace xla_stalloc
