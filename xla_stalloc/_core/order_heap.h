// What an order puts on the heap, for a look at what an allocator would make of it.
#pragma once

#include "best_fit.h"
#include "graph.h"

namespace xla_stalloc {

// One item for each storage, with a life for each buffer that was in it; lumps are items that live for one node. Time
// ticks as in XLA's heap simulator: at every birth and at every death.
Heap heap_of(const Graph& graph, const Order& order, std::int64_t alignment);

void register_order_heap(nanobind::module_& m);

}  // namespace xla_stalloc
