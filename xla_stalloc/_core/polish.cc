#include "polish.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "random.h"

namespace xla_stalloc {

namespace {

constexpr int kDefaultMemory = 0;  // XLA's colour of the device's main memory
constexpr int kMostMoves = 3;      // nodes moved before the heap is packed again
constexpr int kNegligible = 100;   // holes below this part of what is live are not worth a search

class Polisher {
 public:
  Polisher(const Graph& graph, PolishProblem problem, Order order, const PolishOptions& options)
      : graph_(graph), problem_(std::move(problem)), random_(options.seed), order_(std::move(order)) {
    find_nodes_of_values();
    packing_ = pack(order_, std::numeric_limits<std::int64_t>::max() - 1);
    for (int i = 0; i < options.evaluations && has_holes(); ++i) {
      Order changed = order_;
      for (int moves = 1 + random_.below(kMostMoves); moves > 0; --moves) move(changed);
      Packing packing = pack(changed, packing_.height);
      if (packing.height > packing_.height) continue;
      order_ = std::move(changed);
      packing_ = std::move(packing);
    }
  }

  std::pair<Order, std::int64_t> result() && { return {std::move(order_), packing_.height}; }

 private:
  struct Packing {
    std::int64_t height = 0;
    std::int64_t live = 0;  // the most bytes live at once
    std::vector<int> top;   // values of the blocks that reach the height
  };

  bool has_holes() const { return packing_.height - packing_.live > packing_.live / kNegligible; }

  void find_nodes_of_values() {
    std::vector<int> node_of(problem_.program.instructions, -1);
    for (int node = 0; node < graph_.nodes; ++node) {
      for (const int instruction : problem_.members[node]) node_of[instruction] = node;
    }
    const auto add = [&](const Csr::Row& moments, std::vector<int>& nodes) {
      for (const Moment moment : moments) {
        if (moment >= 0 && node_of[moment] >= 0) nodes.push_back(node_of[moment]);
      }
    };
    nodes_of_value_.resize(problem_.program.buffer.size());
    for (std::size_t v = 0; v < nodes_of_value_.size(); ++v) {
      add(problem_.program.positions[static_cast<int>(v)], nodes_of_value_[v]);
      add(problem_.program.uses[static_cast<int>(v)], nodes_of_value_[v]);
    }
  }

  // Exact up to `most` bytes; above it the height is only known to be above.
  Packing pack(const Order& order, std::int64_t most) {
    Order& sequence = problem_.sequences[problem_.computation];
    sequence = problem_.first;
    for (const int node : order) {
      sequence.insert(sequence.end(), problem_.members[node].begin(), problem_.members[node].end());
    }
    const LiveRanges ranges = live_ranges(problem_.program, problem_.sequences);
    const Assignment assignment =
        assign(problem_.program, problem_.rules, ranges, kDefaultMemory, problem_.alignment);
    const Placement placement = best_fit(assignment.blocks, most + 1);
    Packing packing{placement.height,
                    *std::max_element(assignment.live_bytes.begin(), assignment.live_bytes.end()), {}};
    for (std::size_t v = 0; v < assignment.block.size(); ++v) {
      const int block = assignment.block[v];
      if (block < 0 || nodes_of_value_[v].empty()) continue;
      if (placement.offsets[block] + assignment.blocks.sizes[block] == placement.height) {
        packing.top.push_back(static_cast<int>(v));
      }
    }
    return packing;
  }

  // Moves one node to another place between what it needs and what needs it: every other time one that touches the
  // top of the heap.
  void move(Order& order) {
    int node = random_.below(graph_.nodes);
    const std::vector<int>& top = packing_.top;
    if (!top.empty() && random_.below(2) == 0) {
      const auto& nodes = nodes_of_value_[top[random_.below(static_cast<int>(top.size()))]];
      node = nodes[random_.below(static_cast<int>(nodes.size()))];
    }
    std::vector<int> place(graph_.nodes);
    for (int i = 0; i < graph_.nodes; ++i) place[order[i]] = i;
    int lowest = 0, highest = graph_.nodes - 1;
    for (const int before : graph_.predecessors[node]) lowest = std::max(lowest, place[before] + 1);
    for (const int after : graph_.successors[node]) highest = std::min(highest, place[after] - 1);
    const int from = place[node], to = lowest + random_.below(highest - lowest + 1);
    const auto begin = order.begin();
    if (from < to) std::rotate(begin + from, begin + from + 1, begin + to + 1);
    if (to < from) std::rotate(begin + to, begin + from, begin + from + 1);
  }

  const Graph& graph_;
  PolishProblem problem_;
  Random random_;
  Order order_;
  Packing packing_;  // of order_
  std::vector<std::vector<int>> nodes_of_value_;
};

}  // namespace

std::pair<Order, std::int64_t> polish(const Graph& graph, PolishProblem problem, Order order,
                                      const PolishOptions& options) {
  return Polisher(graph, std::move(problem), std::move(order), options).result();
}

void register_polish(nb::module_& m) {
  m.def(
      "polish",
      [](const Graph& graph, const Program& program, const SharingRules& rules, Sequences sequences, int computation,
         std::vector<std::int32_t> first, const Csr& members, const Input<std::int64_t>& order, std::int64_t alignment,
         int evaluations, std::uint64_t seed) {
        std::pair<Order, std::int64_t> best;
        Order start = to_vector<std::int32_t>(order);
        {
          nb::gil_scoped_release released;
          best = polish(graph, {program, rules, std::move(sequences), computation, std::move(first), members, alignment},
                        std::move(start), {evaluations, seed});
        }
        return std::make_pair(to_numpy(best.first), best.second);
      },
      nb::arg("graph"), nb::arg("program"), nb::arg("rules"), nb::arg("sequences"), nb::arg("computation"),
      nb::arg("first"), nb::arg("members"), nb::arg("order"), nb::arg("alignment"), nb::arg("evaluations"),
      nb::arg("seed"));
}

}  // namespace xla_stalloc
