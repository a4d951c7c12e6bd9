// Annealed local search on orders, aimed at the peak: move nodes so that less is live at the worst positions.
#pragma once

#include <cstdint>

#include "graph.h"

namespace xla_stalloc {

struct LocalSearchOptions {
  std::int64_t moves = 100'000;  // tried, not accepted
  int window = 400;              // positions that one move may disturb at most
  std::int64_t floor = 0;        // a peak that nothing can beat: stop there
  std::uint64_t seed = 0;
};

// The best order found, never worse than the one given. The same arguments give the same order on every host.
Order local_search(const Graph& graph, Order start, const LocalSearchOptions& options);

void register_local_search(nanobind::module_& m);

}  // namespace xla_stalloc
