// Where each allocation of a job goes: the arena's half of a job plan.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace xla_stalloc::arena {

// The planned place of one allocation.
struct Block {
  uint64_t offset;
  uint64_t bytes;  // 0: this allocation is not planned
};

// One planned execution: its allocations, by the index in which the program asks for them.
struct Slot {
  uint32_t first_block;
  uint32_t blocks;
};

// Executions of one program that follow each other.
struct Run {
  uint64_t program;     // fingerprint
  uint32_t first_slot;
  uint32_t slots;
  bool repeats;         // the slots are used in turns for as long as the program runs; else each of them once
};

struct Plan {
  uint64_t height = 0;  // bytes
  uint32_t cycle = 0;   // the run that follows the last one
  std::vector<Run> runs;
  std::vector<Slot> slots;
  std::vector<Block> blocks;

  // Throws std::invalid_argument, naming the entry, if an index or a byte lies outside.
  void check() const;
};

// Follows the job along the plan. Where the job does something else the cursor looks for the next place in the plan
// that runs the program, and goes on from there: one surprise never shifts what follows.
class Cursor {
 public:
  explicit Cursor(const Plan& plan);

  // The slot of the execution that begins now; nothing, and the cursor stays, if no run is of this program.
  std::optional<uint32_t> next(uint64_t program);

  // The slots that are expected next, `executions` of them.
  std::vector<uint32_t> upcoming(uint32_t executions) const;

 private:
  std::optional<uint32_t> find(uint64_t program) const;
  uint32_t after(uint32_t run) const;

  const Plan& plan_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> runs_of_;
  uint32_t run_ = 0;
  uint32_t used_ = 0;  // executions of the run so far
};

}  // namespace xla_stalloc::arena
