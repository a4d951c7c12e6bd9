// Arenas from outside: a plan comes in as flat tables, figures go out.
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "arena_memory.h"
#include "control.h"
#include "host_memory.h"

namespace stalloc {
namespace {

// The one that serves, kept for as long as the process: blocks may go back to it at any time.
ArenaMemory* g_arenas = nullptr;

xla_stalloc::arena::Plan PlanOf(const stalloc_plan& tables) {
  xla_stalloc::arena::Plan plan;
  plan.height = tables.height;
  plan.cycle = static_cast<uint32_t>(tables.cycle);
  uint32_t slot = 0, block = 0;
  for (uint64_t run = 0; run < tables.runs; ++run) {
    const auto slots = static_cast<uint32_t>(tables.run_slots[run]);
    plan.runs.push_back({tables.run_programs[run], slot, slots, tables.run_repeats[run] != 0});
    slot += slots;
  }
  for (uint64_t i = 0; i < tables.slots; ++i) {
    const auto blocks = static_cast<uint32_t>(tables.slot_blocks[i]);
    plan.slots.push_back({block, blocks});
    block += blocks;
  }
  for (uint64_t i = 0; i < tables.blocks; ++i) plan.blocks.push_back({tables.block_offsets[i], tables.block_bytes[i]});
  return plan;
}

}  // namespace
}  // namespace stalloc

STALLOC_EXPORT const char* stalloc_serve(uint32_t devices, uint64_t bytes, const stalloc_plan* plan, int debug) {
  using namespace xla_stalloc::arena;
  thread_local std::string problem;
  try {
    std::vector<std::unique_ptr<Arena>> arenas;
    for (uint32_t device = 0; device < devices; ++device) {
      Options options;
      options.shadow = options.poison = debug != 0;
      options.red_zone = debug != 0 ? 64 : 0;
      arenas.push_back(std::make_unique<Arena>(std::make_unique<HostPages>(bytes), stalloc::PlanOf(*plan), options));
    }
    stalloc::g_arenas = new stalloc::ArenaMemory(std::move(arenas));
  } catch (const std::exception& error) {
    return (problem = error.what()).c_str();
  }
  stalloc::ServeHostMemoryFrom(stalloc::g_arenas);
  return "";
}

STALLOC_EXPORT int stalloc_read_arena(uint32_t device, stalloc_arena* figures) {
  auto* arena = stalloc::g_arenas == nullptr ? nullptr : stalloc::g_arenas->At(device);
  if (arena == nullptr) return 0;
  const auto now = arena->statistics();
  *figures = {now.requests,   now.hits,     now.unknown_program, now.unknown_index, now.unfit,
              now.occupied,   now.in_gaps,  now.in_overflow,     now.failures,      now.live_blocks,
              now.in_use_bytes, now.peak_in_use_bytes, now.reserved_bytes, now.peak_reserved_bytes};
  return 1;
}
