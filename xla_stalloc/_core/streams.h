// What a GPU does with an order: one stream computes, one communicates, and each runs its work in the order issued.
//
// A start puts its communication behind what the link still has to do; the node that waits for it holds up the compute
// stream until it is done. Whole nanoseconds, so that every host finds the same.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "graph.h"

namespace xla_stalloc {

struct Streams {
  std::vector<std::int64_t> compute;        // of each node, ns
  std::vector<std::int64_t> communication;  // of each node, ns
  std::vector<std::int32_t> waits_for;      // of each node: the node whose communication it waits for, or -1

  bool waits(int node) const { return waits_for[node] >= 0; }
};

// Both streams along an order, and along variants of it that differ in one stretch.
class StreamSimulation {
 public:
  StreamSimulation(const Streams& streams, Order order);

  const Streams& streams() const { return streams_; }
  const Order& order() const { return order_; }
  // From the first node to the end of both streams, ns.
  std::int64_t total() const { return before_.back().compute; }
  // Time in which nothing is computed because communication is waited for, ns.
  std::int64_t exposed() const { return before_.back().exposed; }
  // How long the node at `position` holds up the compute stream, ns.
  std::int64_t wait(int position) const {
    return before_[position + 1].exposed - before_[position].exposed;
  }

  // The exposed time when these nodes, the same set, stand at [begin, begin + nodes.size()). Behind the stretch it
  // looks no further than to where the link has nothing left to do: from there on all is as before, only at other times.
  std::int64_t replay(int begin, const Order& nodes);

  // Makes the last replay part of the order.
  void commit();

 private:
  struct State {
    std::int64_t compute = 0, link = 0;  // when each stream is free
    std::int64_t exposed = 0;
    bool idle() const { return link <= compute; }
  };

  void step(int node, State& now);

  const Streams& streams_;
  Order order_;
  std::vector<std::int64_t> finish_;  // of each node: when its communication is done
  std::vector<State> before_;         // each position; the last one: when both streams have ended

  // The last replay.
  int begin_ = 0, met_ = 0;  // from `met_` on, times are only shifted
  Order nodes_;
  std::vector<State> new_before_;     // from begin_ on, to met_ inclusive
  std::vector<std::int64_t> new_finish_;
  std::vector<std::uint32_t> stamp_;  // of each node: the replay that changed its finish
  std::uint32_t epoch_ = 0;
};

void register_streams(nanobind::module_& m);

}  // namespace xla_stalloc
