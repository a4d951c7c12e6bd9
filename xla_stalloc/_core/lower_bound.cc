#include "lower_bound.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "arrays.h"
#include "depth_first.h"
#include "memory_profile.h"
#include "node_cut.h"
#include "tighten.h"

namespace xla_stalloc {

namespace {

// Nodes are bounded in blocks, so that reachability takes nodes x kBlock bits at a time and never nodes x nodes.
constexpr int kWords = 16;
constexpr int kBlock = kWords * 64;

// Nodes whose bound is worth a minimum cut.
constexpr int kCuts = 16;

struct Bits {
  std::array<std::uint64_t, kWords> words{};
  void set(int i) { words[i >> 6] |= std::uint64_t{1} << (i & 63); }
  bool has(int i) const { return (words[i >> 6] >> (i & 63)) & 1; }
  Bits& operator|=(const Bits& other) {
    for (int w = 0; w < kWords; ++w) words[w] |= other.words[w];
    return *this;
  }
};

// The bounds of the nodes [begin, end), at most kBlock of them.
class Block {
 public:
  Block(const Graph& graph, int begin, int end)
      : graph_(graph), begin_(begin), end_(end), after_(graph.nodes), before_(graph.nodes) {
    for (int node = begin; node < graph.nodes; ++node) {
      if (node < end) before_[node].set(node - begin);
      for (const std::int32_t predecessor : graph.predecessors[node]) before_[node] |= before_[predecessor];
    }
    for (int node = end - 1; node >= 0; --node) {
      if (node >= begin) after_[node].set(node - begin);
      for (const std::int32_t successor : graph.successors[node]) after_[node] |= after_[successor];
    }
  }

  std::int64_t bound() const {
    std::vector<std::int64_t> bytes(graph_.lump.begin() + begin_, graph_.lump.begin() + end_);
    for (int buffer = 0; buffer < graph_.buffers; ++buffer) {
      const Bits born = reached(buffer, after_), needed = reached(buffer, before_);
      for (int w = 0; w < kWords; ++w) {
        std::uint64_t live = (graph_.live_in[buffer] ? ~std::uint64_t{0} : born.words[w]) &
                             (graph_.live_out[buffer] ? ~std::uint64_t{0} : needed.words[w]);
        for (; live != 0; live &= live - 1) {
          const int i = w * 64 + __builtin_ctzll(live);
          if (begin_ + i < end_) bytes[i] += graph_.size[buffer];
        }
      }
    }
    std::int64_t most = 0;
    for (int node = begin_; node < end_; ++node) most = std::max(most, bytes[node - begin_] - most_taken_over(node));
    return most;
  }

  // What births at a node of the block can take over at most: for each size, there are no more such births than there
  // are births, nor than there are deaths.
  std::int64_t most_taken_over(int node) const {
    if (!graph_.may_reuse[node]) return 0;
    std::map<std::int64_t, std::pair<std::vector<std::int32_t>, int>> by_size;  // the deaths, and the count of births
    for (const std::int32_t buffer : graph_.touched[node]) {
      if (graph_.live_in[buffer] || always_beside(buffer, node, after_)) continue;
      bool can_take = false;
      for (const std::int32_t other : graph_.reuses[buffer]) {
        const Csr::Row touches = graph_.touches[other];
        const bool dies_here = !graph_.live_out[other] && !always_beside(other, node, before_) &&
                               std::find(touches.begin(), touches.end(), node) != touches.end();
        if (!dies_here) continue;
        can_take = true;
        by_size[graph_.size[buffer]].first.push_back(other);
      }
      if (can_take) ++by_size[graph_.size[buffer]].second;
    }
    std::int64_t bytes = 0;
    for (auto& [size, candidates] : by_size) {
      auto& [deaths, births] = candidates;
      std::sort(deaths.begin(), deaths.end());
      const auto distinct = std::unique(deaths.begin(), deaths.end()) - deaths.begin();
      bytes += size * std::min<std::int64_t>(distinct, births);
    }
    return bytes;
  }

 private:
  Bits reached(int buffer, const std::vector<Bits>& from) const {
    Bits bits;
    for (const std::int32_t node : graph_.touches[buffer]) bits |= from[node];
    return bits;
  }

  // Some node that touches the buffer, other than this one, always runs on that side of it.
  bool always_beside(int buffer, int node, const std::vector<Bits>& side) const {
    const Csr::Row touches = graph_.touches[buffer];
    return std::any_of(touches.begin(), touches.end(),
                       [&](int other) { return other != node && side[other].has(node - begin_); });
  }

  const Graph& graph_;
  const int begin_, end_;
  std::vector<Bits> after_;   // of each node: the nodes of the block that it is, or that must run after it
  std::vector<Bits> before_;  // of each node: the nodes of the block that it is, or that must run before it
};

// Where a good order needs most is where any order is likely to need much.
std::vector<std::int32_t> hot_nodes(const Graph& graph, std::size_t count) {
  const MemoryProfile profile(graph, tighten(graph, depth_first(graph, ChildOrder::kShallowestFirst)));
  std::vector<std::int32_t> positions(graph.nodes);
  std::iota(positions.begin(), positions.end(), 0);
  std::stable_sort(positions.begin(), positions.end(),
                   [&](int a, int b) { return profile.memory(a) > profile.memory(b); });
  positions.resize(std::min(count, positions.size()));
  for (std::int32_t& position : positions) position = profile.order()[position];
  return positions;
}

}  // namespace

std::int64_t lower_bound(const Graph& graph) {
  std::int64_t bound = 0;
  for (int begin = 0; begin < graph.nodes; begin += kBlock)
    bound = std::max(bound, Block(graph, begin, std::min(graph.nodes, begin + kBlock)).bound());
  for (const std::int32_t node : hot_nodes(graph, kCuts))
    bound = std::max(bound, cut_at(graph, node).bytes - Block(graph, node, node + 1).most_taken_over(node));
  return bound;
}

void register_lower_bound(nb::module_& m) {
  m.def("lower_bound", &lower_bound, nb::arg("graph"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace xla_stalloc
