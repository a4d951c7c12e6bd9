// The Python face of the C++ kernels: one register function per source file.
#include <nanobind/nanobind.h>

#include "arena_binding.h"
#include "assignment.h"
#include "best_fit.h"
#include "conflicts.h"
#include "depth_first.h"
#include "first_fit.h"
#include "graph.h"
#include "live_ranges.h"
#include "local_search.h"
#include "lower_bound.h"
#include "memory_profile.h"
#include "polish.h"
#include "node_cut.h"
#include "order_heap.h"
#include "ordered_fit.h"
#include "overlap_search.h"
#include "sections.h"
#include "streams.h"
#include "sweep.h"
#include "tight_search.h"
#include "tighten.h"

NB_MODULE(_core, m) {
  m.doc() = "C++ kernels of packing and scheduling.";
  xla_stalloc::register_graph(m);
  xla_stalloc::register_memory_profile(m);
  xla_stalloc::register_depth_first(m);
  xla_stalloc::register_tighten(m);
  xla_stalloc::register_node_cut(m);
  xla_stalloc::register_local_search(m);
  xla_stalloc::register_lower_bound(m);
  xla_stalloc::register_best_fit(m);
  xla_stalloc::register_first_fit(m);
  xla_stalloc::register_order_heap(m);
  xla_stalloc::register_live_ranges(m);
  xla_stalloc::register_assignment(m);
  xla_stalloc::register_polish(m);
  xla_stalloc::register_streams(m);
  xla_stalloc::register_overlap_search(m);
  xla_stalloc::register_tight_search(m);
  xla_stalloc::register_conflicts(m);
  xla_stalloc::register_sections(m);
  xla_stalloc::register_sweep(m);
  xla_stalloc::register_ordered_fit(m);
  xla_stalloc::register_arena(m);
}
