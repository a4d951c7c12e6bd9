#include "streams.h"

#include <algorithm>

#include <nanobind/stl/pair.h>

#include "arrays.h"

namespace xla_stalloc {

StreamSimulation::StreamSimulation(const Streams& streams, Order order)
    : streams_(streams),
      order_(std::move(order)),
      finish_(order_.size()),
      before_(order_.size() + 1),
      new_finish_(order_.size()),
      stamp_(order_.size(), 0) {
  replay(0, order_);
  commit();
}

std::int64_t StreamSimulation::replay(int begin, const Order& nodes) {
  const int steps = static_cast<int>(order_.size());
  const int end = begin + static_cast<int>(nodes.size());
  begin_ = begin;
  nodes_.assign(nodes.begin(), nodes.end());
  new_before_.clear();
  ++epoch_;
  State now = begin == 0 ? State{} : before_[begin];
  for (int k = begin; k < steps; ++k) {
    if (k >= end && now.idle() && before_[k].idle()) {
      met_ = k;
      new_before_.push_back(now);
      return before_.back().exposed + now.exposed - before_[k].exposed;
    }
    new_before_.push_back(now);
    step(k < end ? nodes_[k - begin] : order_[k], now);
  }
  // What nobody waits for still has to end.
  now.exposed += std::max<std::int64_t>(0, now.link - now.compute);
  now.compute = std::max(now.compute, now.link);
  met_ = steps;
  new_before_.push_back(now);
  return now.exposed;
}

void StreamSimulation::step(int node, State& now) {
  if (streams_.communication[node] > 0) {
    now.link = std::max(now.compute, now.link) + streams_.communication[node];
    new_finish_[node] = now.link;
    stamp_[node] = epoch_;
  }
  if (streams_.waits(node)) {
    const int start = streams_.waits_for[node];
    const std::int64_t done = stamp_[start] == epoch_ ? new_finish_[start] : finish_[start];
    now.exposed += std::max<std::int64_t>(0, done - now.compute);
    now.compute = std::max(now.compute, done);
  }
  now.compute += streams_.compute[node];
}

void StreamSimulation::commit() {
  const int steps = static_cast<int>(order_.size());
  std::copy(nodes_.begin(), nodes_.end(), order_.begin() + begin_);
  const State met = new_before_.back(), was = before_[met_];
  for (int k = begin_; k < met_; ++k) {
    before_[k] = new_before_[k - begin_];
    if (stamp_[order_[k]] == epoch_) finish_[order_[k]] = new_finish_[order_[k]];
  }
  if (met_ == steps) {
    before_[steps] = met;
    return;
  }
  const std::int64_t later = met.compute - was.compute, more = met.exposed - was.exposed;
  for (int k = met_; k <= steps; ++k) {
    before_[k].compute += later;
    before_[k].link += later;
    before_[k].exposed += more;
    if (k < steps) finish_[order_[k]] += later;
  }
  before_[met_] = met;
}

void register_streams(nb::module_& m) {
  nb::class_<Streams>(m, "Streams", "Times of a graph's nodes on the compute and the communication stream.")
      .def(
          "__init__",
          [](Streams* streams, const Input<std::int64_t>& compute, const Input<std::int64_t>& communication,
             const Input<std::int64_t>& waits_for) {
            new (streams) Streams{to_vector<std::int64_t>(compute), to_vector<std::int64_t>(communication),
                                  to_vector<std::int32_t>(waits_for)};
          },
          nb::arg("compute"), nb::arg("communication"), nb::arg("waits_for"));
  m.def(
      "simulate",
      [](const Graph& graph, const Streams& streams, const Input<std::int64_t>& order) {
        const StreamSimulation simulation(streams, read_order(graph, order));
        return std::make_pair(simulation.total(), simulation.exposed());
      },
      nb::arg("graph"), nb::arg("streams"), nb::arg("order"));
}

}  // namespace xla_stalloc
