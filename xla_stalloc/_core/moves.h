// Moves of a node along an order that stay valid: whatever must move along does.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.h"

namespace xla_stalloc {

class Moves {
 public:
  explicit Moves(const Graph& graph) : graph_(graph), group_(graph.nodes, 0) {}

  // The stretch that the last move disturbs: these nodes, in this order, from here on.
  int begin() const { return begin_; }
  int end() const { return begin_ + static_cast<int>(stretch_.size()); }
  const Order& stretch() const { return stretch_; }

  // Moves the node at `from` to `to`, behind it; what needs it goes with it, in the same order. False if nothing moves.
  bool delay(const Order& order, int from, int to) {
    start_group(order[from]);
    for (int k = from + 1; k <= to; ++k) sort_into_group(order[k], graph_.predecessors);
    begin_ = from;
    stretch_.assign(others_.begin(), others_.end());
    stretch_.insert(stretch_.end(), movers_.begin(), movers_.end());
    return !others_.empty();
  }

  // Moves the node at `from` to `to`, before it; what it needs goes with it, in the same order.
  bool advance(const Order& order, int from, int to) {
    start_group(order[from]);
    for (int k = from - 1; k >= to; --k) sort_into_group(order[k], graph_.successors);
    begin_ = to;
    stretch_.assign(movers_.rbegin(), movers_.rend());
    stretch_.insert(stretch_.end(), others_.rbegin(), others_.rend());
    return !others_.empty();
  }

  bool move(const Order& order, int from, int to) {
    return from < to ? delay(order, from, to) : advance(order, from, to);
  }

 private:
  void start_group(int node) {
    ++epoch_;
    movers_.clear();
    others_.clear();
    group_[node] = epoch_;
    movers_.push_back(node);
  }

  void sort_into_group(int node, const Csr& neighbours) {
    for (const std::int32_t neighbour : neighbours[node]) {
      if (group_[neighbour] != epoch_) continue;
      group_[node] = epoch_;
      movers_.push_back(node);
      return;
    }
    others_.push_back(node);
  }

  const Graph& graph_;
  int begin_ = 0;
  Order stretch_;
  Order movers_, others_;
  std::vector<std::uint32_t> group_;  // of each node: the last move that took it along
  std::uint32_t epoch_ = 0;
};

}  // namespace xla_stalloc
