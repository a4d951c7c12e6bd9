// Orders by depth-first search: finish what feeds one node before starting on what feeds the next.
#pragma once

#include <string_view>
#include <vector>

#include "graph.h"

namespace xla_stalloc {

// In which order a node's predecessors are visited (and the sinks, as if one more node needed them all).
enum class ChildOrder {
  kEarliestFirst,    // by position in the incumbent order
  kLatestFirst,
  kShallowestFirst,  // by the longest path that leads to the node: depends on the graph alone
  kHillValley,       // by peak less residue of the subtree: the optimal postorder on trees (Liu 1986)
};

// The post-order from the sinks. Sinks and equal keys go by position.
Order depth_first(const Graph& graph, ChildOrder child_order);

void register_depth_first(nanobind::module_& m);

}  // namespace xla_stalloc
