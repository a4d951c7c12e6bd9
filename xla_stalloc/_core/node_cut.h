// The least that can be live while a node runs, and what should be done by then: a minimum cut.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.h"

namespace xla_stalloc {

struct NodeCut {
  std::int64_t bytes = 0;   // live at the node, take-overs not taken off
  std::vector<char> done;   // of each node: it runs before
};

// The best set of nodes to have done when the node runs, whatever the peak on the way there.
NodeCut cut_at(const Graph& graph, int node);

// Reorders around the node of the peak by its cut and tightens, as long as that lowers the peak or how often the order
// reaches it.
Order cut_peaks(const Graph& graph, Order order);

void register_node_cut(nanobind::module_& m);

}  // namespace xla_stalloc
