#include "plan.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace xla_stalloc::arena {
namespace {

void require(bool holds, const char* what, size_t number) {
  if (!holds) throw std::invalid_argument("arena plan: " + std::string(what) + " " + std::to_string(number));
}

}  // namespace

void Plan::check() const {
  require(runs.empty() || cycle < runs.size(), "the cycle starts at a run that is not there:", cycle);
  for (size_t number = 0; number < runs.size(); ++number) {
    const Run& run = runs[number];
    const bool inside = run.first_slot <= slots.size() && run.slots <= slots.size() - run.first_slot;
    require(run.slots > 0 && inside, "the slots lie outside the plan, of run", number);
  }
  for (size_t number = 0; number < slots.size(); ++number) {
    const Slot& slot = slots[number];
    const bool inside = slot.first_block <= blocks.size() && slot.blocks <= blocks.size() - slot.first_block;
    require(inside, "the blocks lie outside the plan, of slot", number);
  }
  for (size_t number = 0; number < blocks.size(); ++number) {
    const Block& block = blocks[number];
    const bool inside = block.bytes <= height && block.offset <= height - block.bytes;
    require(inside, "a block ends above the height, block", number);
  }
}

Cursor::Cursor(const Plan& plan) : plan_(plan) {
  for (uint32_t run = 0; run < plan.runs.size(); ++run) runs_of_[plan.runs[run].program].push_back(run);
}

uint32_t Cursor::after(uint32_t run) const { return run + 1 < plan_.runs.size() ? run + 1 : plan_.cycle; }

std::optional<uint32_t> Cursor::find(uint64_t program) const {
  const auto entry = runs_of_.find(program);
  if (entry == runs_of_.end()) return std::nullopt;
  const std::vector<uint32_t>& runs = entry->second;
  const auto later = std::upper_bound(runs.begin(), runs.end(), run_);
  if (later != runs.end()) return *later;
  const auto in_cycle = std::lower_bound(runs.begin(), runs.end(), plan_.cycle);
  return in_cycle != runs.end() ? *in_cycle : runs.front();
}

std::optional<uint32_t> Cursor::next(uint64_t program) {
  if (plan_.runs.empty()) return std::nullopt;
  const Run& now = plan_.runs[run_];
  if (now.program != program || (!now.repeats && used_ >= now.slots)) {
    const std::optional<uint32_t> found = find(program);
    if (!found) return std::nullopt;
    run_ = *found;
    used_ = 0;
  }
  const Run& run = plan_.runs[run_];
  const uint32_t slot = run.first_slot + used_ % run.slots;
  ++used_;
  if (run.repeats && used_ == 2 * run.slots) used_ = run.slots;  // it only says: at least one turn was made
  return slot;
}

std::vector<uint32_t> Cursor::upcoming(uint32_t executions) const {
  std::vector<uint32_t> slots;
  if (plan_.runs.empty()) return slots;
  uint32_t run = run_;
  uint32_t used = used_;
  while (slots.size() < executions) {
    const Run& now = plan_.runs[run];
    if (now.repeats || used < now.slots) {
      slots.push_back(now.first_slot + used % now.slots);
      ++used;
      if (!now.repeats || used < 2 * now.slots) continue;
    }
    run = after(run);
    used = 0;
  }
  return slots;
}

}  // namespace xla_stalloc::arena
