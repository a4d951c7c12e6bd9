// Maximum flow, which is minimum cut (Dinic 1970).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace xla_stalloc {

class MaxFlow {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;

  int add_vertex();
  void add_edge(int from, int to, std::int64_t capacity);

  // The flow from source to sink, once; edges keep what it leaves of their capacity.
  std::int64_t run(int source, int sink);

  // After the run: on the source's side of the minimum cut that is nearest to the source.
  bool on_source_side(int vertex) const { return level_[vertex] >= 0; }

 private:
  static constexpr std::int32_t kNone = -1;

  struct Edge {
    std::int32_t to;
    std::int32_t next;  // edge of the same vertex, or kNone
    std::int64_t left;  // capacity; the edge's number ^ 1 is its reverse
  };

  bool reach(int source, int sink);
  std::int64_t push(int source, int sink);

  std::vector<std::int32_t> first_;  // edge of each vertex, or kNone
  std::vector<Edge> edges_;
  std::vector<std::int32_t> level_, queue_, path_;
  std::vector<std::int32_t> current_;  // of each vertex: the first edge that the blocking flow may still use
};

}  // namespace xla_stalloc
