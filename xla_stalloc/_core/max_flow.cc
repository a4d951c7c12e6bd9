#include "max_flow.h"

#include <algorithm>

namespace xla_stalloc {

int MaxFlow::add_vertex() {
  first_.push_back(kNone);
  return static_cast<int>(first_.size()) - 1;
}

void MaxFlow::add_edge(int from, int to, std::int64_t capacity) {
  const auto number = static_cast<std::int32_t>(edges_.size());
  edges_.push_back({to, first_[from], capacity});
  first_[from] = number;
  edges_.push_back({from, first_[to], 0});
  first_[to] = number + 1;
}

std::int64_t MaxFlow::run(int source, int sink) {
  std::int64_t flow = 0;
  while (reach(source, sink)) {
    current_ = first_;
    while (const std::int64_t pushed = push(source, sink)) flow += pushed;
  }
  return flow;
}

// Levels by breadth-first search over edges with capacity left; false if the sink is out of reach.
bool MaxFlow::reach(int source, int sink) {
  level_.assign(first_.size(), -1);
  level_[source] = 0;
  queue_.assign(1, source);
  for (std::size_t head = 0; head < queue_.size() && level_[sink] < 0; ++head) {
    const int vertex = queue_[head];
    for (std::int32_t edge = first_[vertex]; edge != kNone; edge = edges_[edge].next) {
      const int to = edges_[edge].to;
      if (edges_[edge].left == 0 || level_[to] >= 0) continue;
      level_[to] = level_[vertex] + 1;
      queue_.push_back(to);
    }
  }
  return level_[sink] >= 0;
}

// One path of the blocking flow, without recursion: paths may be as long as the graph.
std::int64_t MaxFlow::push(int source, int sink) {
  path_.clear();
  int vertex = source;
  while (vertex != sink) {
    const std::int32_t edge = current_[vertex];
    if (edge == kNone) {  // a dead end: step back and give up the edge that led here
      if (path_.empty()) return 0;
      vertex = edges_[path_.back() ^ 1].to;
      path_.pop_back();
      current_[vertex] = edges_[current_[vertex]].next;
    } else if (edges_[edge].left > 0 && level_[edges_[edge].to] == level_[vertex] + 1) {
      path_.push_back(edge);
      vertex = edges_[edge].to;
    } else {
      current_[vertex] = edges_[edge].next;
    }
  }
  std::int64_t pushed = kUnlimited;
  for (const std::int32_t edge : path_) pushed = std::min(pushed, edges_[edge].left);
  for (const std::int32_t edge : path_) {
    edges_[edge].left -= pushed;
    edges_[edge ^ 1].left += pushed;
  }
  return pushed;
}

}  // namespace xla_stalloc
