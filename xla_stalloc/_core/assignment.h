// What XLA's buffer assignment does with given live ranges: which buffers reuse the memory of arguments and outputs,
// and where the others lie in the heap (xla/service/buffer_assignment.cc, heap_simulator/heap_simulator.cc).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "best_fit.h"
#include "graph.h"
#include "live_ranges.h"

namespace xla_stalloc {

enum class Role : int {
  fixed = 0,     // memory of its own that nothing else may use: read-only arguments, constants, tables of tuples
  argument = 1,  // an argument that is aliased with an output: others may use its memory before and after it
  output = 2,    // lives out of the program
  temp = 3,
};

struct SharingRules {
  // Of each must-alias buffer:
  std::vector<std::int64_t> size;  // bytes of its largest value
  std::vector<int> color;          // memory space
  std::vector<int> role;
  Csr operands;                    // buffers whose allocation is tried before all others
  std::vector<int> order;          // the buffers in the order in which XLA assigns them
  // Of each value:
  Csr heirs;             // values that may take over its memory where it ends ...
  Csr heirs_positions;   // ... and at which of its positions they may, for each
  Csr copied;            // values that it copies: a copy never lies in one allocation with its source
  Csr reuses;            // values whose memory it may take over in the heap, in the order of its operands
};

struct HeapEvent {
  enum Kind : int { alloc = 0, free = 1, share_with = 2 };
  int kind;
  int value;
  int with;  // share_with: a value whose memory it takes
};

struct Assignment {
  static constexpr int in_heap = -1;
  std::vector<int> host;          // of each buffer: the one that owns its memory (often itself), or in_heap
  std::vector<HeapEvent> events;  // in the order of the program
  Heap blocks;                    // what the heap must place: values that share memory are one block
  std::vector<int> block;         // of each value: its block, or -1
  std::vector<std::int64_t> live_bytes;  // in the heap at each time of the flattened schedule, and at its end
  int peak_event = -1;            // the event after which the most is live, for the first time
};

// Everything but the packing, for one memory space.
Assignment assign(const Program& program, const SharingRules& rules, const LiveRanges& ranges, int color,
                  std::int64_t alignment);

// Hosts of all buffers, and bytes of the heap, when the computations run these sequences.
std::pair<std::vector<int>, std::int64_t> heap_bytes(const Program& program, const SharingRules& rules,
                                                      const Sequences& sequences, int color, std::int64_t alignment);

void register_assignment(nanobind::module_& m);

}  // namespace xla_stalloc
