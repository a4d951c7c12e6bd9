// Shorten lives along an order: what takes memory runs as late as it can, what frees memory as early as it can.
#pragma once

#include "graph.h"

namespace xla_stalloc {

// One pass backward, then one forward, as in the forward-backward improvement of project scheduling (Li and Willis
// 1992). Mostly lowers the peak, may raise it.
Order tighten(const Graph& graph, Order order);

void register_tighten(nanobind::module_& m);

}  // namespace xla_stalloc
