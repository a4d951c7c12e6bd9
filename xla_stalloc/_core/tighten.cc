#include "tighten.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "arrays.h"

namespace xla_stalloc {

namespace {

// The graph as time runs forward, or backward: then births are deaths, and what takes memory frees it.
struct Direction {
  const Csr &predecessors, &successors;
  const std::vector<char>&live_in, &live_out;

  static Direction forward(const Graph& g) { return {g.predecessors, g.successors, g.live_in, g.live_out}; }
  static Direction backward(const Graph& g) { return {g.successors, g.predecessors, g.live_out, g.live_in}; }
};

// Follows an order, except that a node which leaves no more live than there was runs as soon as all it needs has run.
class Eager {
 public:
  Eager(const Graph& graph, const Direction& direction, const Order& order)
      : graph_(graph), direction_(direction), rank_(graph.nodes), born_(direction.live_in), done_(graph.nodes, 0) {
    for (int k = 0; k < graph.nodes; ++k) rank_[order[k]] = k;
    for (int node = 0; node < graph.nodes; ++node) waits_for_.push_back(direction.predecessors[node].size());
    for (int buffer = 0; buffer < graph.buffers; ++buffer) touches_left_.push_back(graph.touches[buffer].size());
    for (int node = 0; node < graph.nodes; ++node) offer(node);
    for (const std::int32_t node : order) {
      run_eager();
      if (!done_[node]) run(node);
    }
  }

  Order take() { return std::move(result_); }

 private:
  bool leaves_no_more(int node) const {
    std::int64_t growth = 0;
    for (const std::int32_t buffer : graph_.touched[node]) {
      if (!born_[buffer]) growth += graph_.size[buffer];
      if (touches_left_[buffer] == 1 && !direction_.live_out[buffer]) growth -= graph_.size[buffer];
    }
    return growth <= 0;
  }

  // What is eager stays so: other nodes that run can only spare it a birth, or leave it a death.
  void offer(int node) {
    if (!done_[node] && waits_for_[node] == 0 && leaves_no_more(node)) eager_.push({rank_[node], node});
  }

  void run_eager() {
    while (!eager_.empty()) {
      const int node = eager_.top().second;
      eager_.pop();
      if (!done_[node]) run(node);
    }
  }

  void run(int node) {
    done_[node] = 1;
    result_.push_back(node);
    for (const std::int32_t buffer : graph_.touched[node]) {
      const bool birth = !born_[buffer];
      born_[buffer] = 1;
      --touches_left_[buffer];
      if (birth || touches_left_[buffer] == 1)
        for (const std::int32_t other : graph_.touches[buffer]) offer(other);
    }
    for (const std::int32_t successor : direction_.successors[node])
      if (--waits_for_[successor] == 0) offer(successor);
  }

  using Ranked = std::pair<std::int32_t, std::int32_t>;

  const Graph& graph_;
  const Direction direction_;
  std::vector<std::int32_t> rank_;           // of each node: its place in the order to follow
  std::vector<char> born_;                   // of each buffer
  std::vector<char> done_;                   // of each node
  std::vector<std::int32_t> touches_left_;   // of each buffer
  std::vector<std::int32_t> waits_for_;      // of each node: predecessors that have not run
  std::priority_queue<Ranked, std::vector<Ranked>, std::greater<>> eager_;
  Order result_;
};

}  // namespace

Order tighten(const Graph& graph, Order order) {
  std::reverse(order.begin(), order.end());
  order = Eager(graph, Direction::backward(graph), order).take();
  std::reverse(order.begin(), order.end());
  return Eager(graph, Direction::forward(graph), order).take();
}

void register_tighten(nb::module_& m) {
  m.def(
      "tighten",
      [](const Graph& graph, const Input<std::int64_t>& order) {
        Order result = read_order(graph, order);
        {
          nb::gil_scoped_release released;
          result = tighten(graph, std::move(result));
        }
        return to_numpy(result);
      },
      nb::arg("graph"), nb::arg("order"));
}

}  // namespace xla_stalloc
