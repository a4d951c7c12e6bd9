// A peak that no order can beat.
#pragma once

#include <cstdint>

#include "graph.h"

namespace xla_stalloc {

// The most that must be live at one node: what it touches, and what is touched both by something that must run before
// it and by something that must run after it, less the most that births there could take over.
std::int64_t lower_bound(const Graph& graph);

void register_lower_bound(nanobind::module_& m);

}  // namespace xla_stalloc
