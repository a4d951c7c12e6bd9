// The memory of an order: bytes live while each node runs. The one place that knows the model.
//
// A buffer lives from its first to its last touching node. A buffer that is born where another of its `reuses` dies
// takes over that storage, and since the other would have been freed right behind the node anyway, all that this
// changes is the memory *at* the node. So the profile is a sum of intervals less a discount that is local to a node,
// and a stretch of an order can be replayed alone, knowing only what was resident before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph.h"

namespace xla_stalloc {

// Calls take(buffer, host) for each buffer born at the node that takes over the storage of a host which was there and
// dies at the node. `taken` is scratch space.
template <typename BornHere, typename WasThereAndDiesHere, typename Take>
void for_each_take_over(const Graph& graph, int node, std::vector<std::int32_t>& taken, const BornHere& born_here,
                        const WasThereAndDiesHere& dies_here, const Take& take) {
  if (!graph.may_reuse[node]) return;
  taken.clear();
  for (const std::int32_t buffer : graph.touched[node]) {
    if (!born_here(buffer)) continue;
    for (const std::int32_t host : graph.reuses[buffer]) {
      if (!dies_here(host) || std::find(taken.begin(), taken.end(), host) != taken.end()) continue;
      taken.push_back(host);
      take(buffer, host);
      break;
    }
  }
}

class MemoryProfile {
 public:
  MemoryProfile(const Graph& graph, Order order);

  const Order& order() const { return order_; }
  int position(int node) const { return position_[node]; }
  int first(int buffer) const { return first_[buffer]; }  // -1 for a live_in buffer
  int last(int buffer) const { return last_[buffer]; }    // number of nodes for a live_out buffer
  std::int64_t memory(int position) const { return memory_[position]; }
  std::int64_t peak() const;

  // Sum over the positions [begin, end) of the bytes above the ceiling.
  std::int64_t excess(int begin, int end, std::int64_t ceiling) const;

  // Replays the nodes at [begin, begin + nodes.size()), which must be the same set, in the order given. Returns their
  // excess over the ceiling, or, as soon as the excess is above `enough`, anything above it: then don't commit.
  std::int64_t replay(int begin, const Order& nodes, std::int64_t ceiling, std::int64_t enough);

  // Makes the last replay, which must have ended, part of the order.
  void commit();

 private:
  std::int64_t taken_over(int step, int node);

  const Graph& graph_;
  Order order_;
  std::vector<std::int32_t> position_;
  std::vector<std::int32_t> first_, last_;          // of each buffer
  std::vector<std::int64_t> memory_, resident_;     // of each position: while the node runs, and after it
  std::int64_t resident_at_start_ = 0;

  // The last replay. Steps count from `begin_`.
  int begin_ = 0;
  Order nodes_;
  std::vector<std::int64_t> new_memory_, new_resident_;
  std::vector<std::int32_t> seen_;                  // buffers touched in the stretch
  std::vector<std::uint32_t> stamp_;                // of each buffer: the replay that saw it
  std::vector<std::int32_t> birth_, death_;         // of each buffer seen: its step, or a mark below
  std::uint32_t epoch_ = 0;
  std::vector<std::int32_t> taken_;
};

void register_memory_profile(nanobind::module_& m);

}  // namespace xla_stalloc
