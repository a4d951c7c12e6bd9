#include "max_flow.h"

#include <algorithm>

namespace xla_stalloc {

void MaxFlow::add_edge(int from, int to, std::int64_t capacity) {
  edges_of_[from].push_back(static_cast<std::int32_t>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(static_cast<std::int32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

std::int64_t MaxFlow::run(int source, int sink) {
  std::int64_t flow = 0;
  while (reach(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    while (const std::int64_t pushed = push(source, sink)) flow += pushed;
  }
  return flow;
}

// Levels by breadth-first search over edges with capacity left; false if the sink is out of reach.
bool MaxFlow::reach(int source, int sink) {
  level_.assign(edges_of_.size(), -1);
  level_[source] = 0;
  queue_.assign(1, source);
  for (std::size_t head = 0; head < queue_.size() && level_[sink] < 0; ++head) {
    const int vertex = queue_[head];
    for (const std::int32_t edge : edges_of_[vertex]) {
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
    if (next_[vertex] == edges_of_[vertex].size()) {
      if (path_.empty()) return 0;
      vertex = edges_[path_.back() ^ 1].to;
      path_.pop_back();
      ++next_[vertex];
      continue;
    }
    const std::int32_t edge = edges_of_[vertex][next_[vertex]];
    if (edges_[edge].left > 0 && level_[edges_[edge].to] == level_[vertex] + 1) {
      path_.push_back(edge);
      vertex = edges_[edge].to;
    } else {
      ++next_[vertex];
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
