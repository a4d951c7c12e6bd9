// Live ranges of values under a given order of instructions, as XLA's HloLiveRange computes them
// (xla/hlo/utils/hlo_live_range.cc). Plain numbers: which instruction defines or uses what was settled before.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "graph.h"

namespace xla_stalloc {

// A moment, whatever the order: `instruction` >= 0 means when it runs; otherwise the begin or the end of a
// computation, encoded as -1 - 2 * computation (begin) or -2 - 2 * computation (end).
using Moment = std::int32_t;

struct Program {
  int entry = 0;  // the computation that runs first
  int instructions = 0;
  int buffers = 0;
  Csr callees;     // of each instruction: the computations that run just before it, in order
  // Values are numbered in the order of XLA's value ids.
  std::vector<Moment> start;  // of each value: it lives from here ...
  Csr positions;   // ... until the latest of its positions (the defining one first) ...
  Csr uses;        // ... and uses
  std::vector<std::uint8_t> read_only_argument;  // of each value: it lives until the program ends
  std::vector<int> buffer;    // of each value: its must-alias set
};

// Of each computation, its instructions in order; computations that are applied per element have none.
using Sequences = std::vector<Order>;

struct LiveRanges {
  std::vector<int> times;           // of each instruction: its place in the flattened schedule; -1 if it never runs
  std::vector<int> schedule;        // the instructions of all computations, callees just before their callers
  std::vector<int> starts, ends;    // of each value, inclusive
  std::vector<int> last_positions;  // of each value: which of its positions is the latest
};

// Throws std::invalid_argument when a sequence names an instruction that is out of range or runs twice.
LiveRanges live_ranges(const Program& program, const Sequences& sequences);

void register_live_ranges(nanobind::module_& m);

}  // namespace xla_stalloc
