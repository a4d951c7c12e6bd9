// First fit in many orders: every item at the lowest offset where it disturbs none that is there already.
//
// An order is repaired by what it leads to: items that end above the bound go in sooner the next time (squeaky wheel
// optimization, Joslin and Clements 1999). Effort is counted, so every host finds the same packing.
#pragma once

#include <cstdint>

#include "best_fit.h"

namespace xla_stalloc {

struct FirstFitOptions {
  std::int64_t target = 0;  // a height that is low enough
  std::int64_t work = 0;    // looks at a neighbour, about
  std::uint64_t seed = 0;
};

// The lowest packing found. Without offsets where the items have too many neighbours for one pass.
Placement first_fit(const Heap& heap, const FirstFitOptions& options);

void register_first_fit(nanobind::module_& m);

}  // namespace xla_stalloc
