// Small moves in an order that make XLA's own packing lower: among orders of about the same peak, some leave holes.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

#include "assignment.h"
#include "graph.h"
#include "live_ranges.h"

namespace xla_stalloc {

// Where the order of one computation's nodes goes into the order of the whole program.
struct PolishProblem {
  const Program& program;
  const SharingRules& rules;
  Sequences sequences;    // of all computations; the one that is polished is rewritten
  int computation;
  std::vector<std::int32_t> first;  // instructions that run before all nodes
  Csr members;            // of each node: its instructions, in order
  std::int64_t alignment;
};

struct PolishOptions {
  int evaluations = 100;  // packings computed; fewer once no holes are left
  std::uint64_t seed = 0;
};

// The best order found and the bytes of its heap; never more than that of the order given.
std::pair<Order, std::int64_t> polish(const Graph& graph, PolishProblem problem, Order order,
                                      const PolishOptions& options);

void register_polish(nanobind::module_& m);

}  // namespace xla_stalloc
