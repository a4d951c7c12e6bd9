// One region of memory from which every allocation of a job is served, at the address that the plan gives it.
//
// What the plan does not know is served too: in a gap of the planned region if nothing that is expected soon needs it,
// else above the region. Only a request that the device cannot hold fails. STAlloc (arXiv 2507.16274) serves PyTorch's
// allocations in this way, from a plan and a caching allocator beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "free_intervals.h"
#include "pages.h"
#include "plan.h"

namespace xla_stalloc::arena {

// The state contradicts itself; the process must stop, or it computes on garbage.
struct Inconsistency : std::logic_error {
  using std::logic_error::logic_error;
};

struct Options {
  // Executions that may begin before a block that is not planned is given back: it is kept out of their addresses.
  uint32_t pipeline = 8;
  double idle_fraction = 0.01;  // of the bytes in use at their peak: what may stay committed though nothing uses it
  // The debug mode.
  bool shadow = false;        // a second account of what is live, which shares nothing with the first
  bool poison = false;        // freed memory is overwritten
  uint64_t red_zone = 0;      // bytes behind each block: canaries, and protected where whole pages lie in it
};

struct Statistics {
  uint64_t requests = 0;
  uint64_t hits = 0;              // served where the plan says
  uint64_t unknown_program = 0;   // why others were not
  uint64_t unknown_index = 0;
  uint64_t unfit = 0;             // larger, or at a wider alignment, than planned
  uint64_t occupied = 0;          // something lives at the planned place
  uint64_t in_gaps = 0;           // where others were served
  uint64_t in_overflow = 0;
  uint64_t failures = 0;
  uint64_t live_blocks = 0;
  uint64_t in_use_bytes = 0;
  uint64_t peak_in_use_bytes = 0;
  uint64_t reserved_bytes = 0;    // committed
  uint64_t peak_reserved_bytes = 0;
  uint64_t largest_free_bytes = 0;  // in the planned region
};

// An execution that was announced; its allocations are known by their index in it.
struct Execution {
  std::optional<uint32_t> slot;
};

class Arena {
 public:
  static constexpr uint64_t kAlignment = 64;  // XLA:CPU's; the least that is ever given

  // Throws std::invalid_argument if the plan contradicts itself or is higher than the pages.
  Arena(std::unique_ptr<Pages> pages, Plan plan, Options options);
  ~Arena();

  Execution begin(uint64_t program);

  // The offset of a block for allocation `index` of an execution; nothing if the device has no room.
  std::optional<uint64_t> request(const Execution& execution, uint32_t index, uint64_t bytes,
                                  uint64_t alignment = kAlignment);

  // Throws Inconsistency if no live block begins there, or if its canary is dead.
  void release(uint64_t offset);

  // Gives idle pages back to the system; returns bytes.
  uint64_t trim();

  Statistics statistics();
  // What was asked, what is in use, what is free: for the person who reads the error.
  std::string why_not(uint64_t bytes);

  char* base() const { return pages_->base(); }
  uint64_t limit() const { return pages_->bytes(); }

 private:
  static constexpr uint32_t kNoBlock = UINT32_MAX;
  struct Taken {
    uint64_t bytes;  // of addresses that are taken
    uint64_t used;   // of them, asked for
    uint32_t block;  // of the plan, or kNoBlock
    bool parked;     // free, but its addresses stay taken: the next turn of the plan wants them again
  };

  std::optional<uint64_t> planned(const Execution& execution, uint32_t index, uint64_t bytes, uint64_t alignment);
  std::optional<uint64_t> in_gap(uint64_t bytes, uint64_t alignment);
  std::optional<uint64_t> in_overflow(uint64_t bytes, uint64_t alignment);
  std::optional<uint64_t> hand_out(uint64_t offset, const Taken& taken);
  bool back_with_pages(uint64_t begin, uint64_t end);
  uint64_t decommit_idle(uint64_t enough);
  void unpark(uint64_t begin, uint64_t end);
  const std::vector<Interval>& needed_soon();
  void went_live(uint64_t offset, const Taken& taken);
  void guard(uint64_t offset, const Taken& taken);
  void check_guard(uint64_t offset, const Taken& taken);
  FreeIntervals& owner(uint64_t offset) { return offset < plan_.height ? region_ : overflow_; }

  std::mutex mutex_;
  std::unique_ptr<Pages> pages_;
  const Plan plan_;
  const Options options_;
  Cursor cursor_;
  FreeIntervals region_;    // [0, height of the plan)
  FreeIntervals overflow_;  // above
  Committed committed_;
  bool region_committed_ = false;  // all of it, so that a hit need not look
  std::map<uint64_t, Taken> taken_;      // by offset
  std::map<uint64_t, uint64_t> shadow_;  // begin -> end
  std::optional<uint32_t> slot_;         // of the execution that began last
  std::optional<std::vector<Interval>> needed_soon_;  // by it and by those that are expected next; by address, joined
  Statistics statistics_;
};

}  // namespace xla_stalloc::arena
