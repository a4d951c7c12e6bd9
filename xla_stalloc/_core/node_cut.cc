#include "node_cut.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "max_flow.h"
#include "memory_profile.h"
#include "tighten.h"

namespace xla_stalloc {

namespace {

constexpr int kRounds = 100;

enum Side : char { kEither, kDone, kToCome };  // of a node, when another one runs

std::vector<Side> sides_of(const Graph& graph, int node) {
  std::vector<Side> side(graph.nodes, kEither);
  side[node] = kToCome;
  for (int other = node; other < graph.nodes; ++other)
    for (const std::int32_t predecessor : graph.predecessors[other])
      if (side[predecessor] == kToCome) side[other] = kToCome;
  std::vector<std::int32_t> ancestors(graph.predecessors[node].begin(), graph.predecessors[node].end());
  while (!ancestors.empty()) {
    const std::int32_t other = ancestors.back();
    ancestors.pop_back();
    if (side[other] == kDone) continue;
    side[other] = kDone;
    ancestors.insert(ancestors.end(), graph.predecessors[other].begin(), graph.predecessors[other].end());
  }
  return side;
}

// Layers repeat, and so do their peaks: one that is gone is progress even while others are as high.
struct Peak {
  std::int64_t bytes = 0;
  int count = 0;  // nodes that need as much
  int node = 0;   // the first of them
};

Peak peak_of(const Graph& graph, const Order& order) {
  const MemoryProfile profile(graph, order);
  Peak peak{profile.peak()};
  for (int k = graph.nodes - 1; k >= 0; --k) {
    if (profile.memory(k) != peak.bytes) continue;
    ++peak.count;
    peak.node = order[k];
  }
  return peak;
}

}  // namespace

// The cut is between what must be done and what must be to come. A buffer costs its size if it is touched on both
// sides: its touches lead into an edge of that capacity, and back out of it, without limit.
NodeCut cut_at(const Graph& graph, int node) {
  const std::vector<Side> side = sides_of(graph, node);
  MaxFlow flow;
  const int source = flow.add_vertex(), sink = flow.add_vertex();
  std::vector<std::int32_t> vertex(graph.nodes);
  for (int other = 0; other < graph.nodes; ++other)
    vertex[other] = side[other] == kDone ? source : side[other] == kToCome ? sink : flow.add_vertex();
  for (int other = 0; other < graph.nodes; ++other)
    for (const std::int32_t predecessor : graph.predecessors[other])
      if (side[other] == kEither && side[predecessor] == kEither)
        flow.add_edge(vertex[other], vertex[predecessor], MaxFlow::kUnlimited);

  NodeCut cut{graph.lump[node], std::vector<char>(graph.nodes)};
  std::vector<char> touched_here(graph.buffers, 0);
  for (const std::int32_t buffer : graph.touched[node]) touched_here[buffer] = 1;
  for (int buffer = 0; buffer < graph.buffers; ++buffer) {
    bool born = graph.live_in[buffer], needed = graph.live_out[buffer];
    for (const std::int32_t other : graph.touches[buffer]) {
      born |= side[other] == kDone;
      needed |= side[other] == kToCome;
    }
    if (touched_here[buffer] || (born && needed)) {
      cut.bytes += graph.size[buffer];
      continue;
    }
    const int begin = flow.add_vertex(), end = flow.add_vertex();
    flow.add_edge(begin, end, graph.size[buffer]);
    if (born) flow.add_edge(source, begin, MaxFlow::kUnlimited);
    if (needed) flow.add_edge(end, sink, MaxFlow::kUnlimited);
    for (const std::int32_t other : graph.touches[buffer]) {
      if (side[other] != kEither) continue;
      flow.add_edge(vertex[other], begin, MaxFlow::kUnlimited);
      flow.add_edge(end, vertex[other], MaxFlow::kUnlimited);
    }
  }
  cut.bytes += flow.run(source, sink);
  for (int other = 0; other < graph.nodes; ++other) cut.done[other] = flow.on_source_side(vertex[other]);
  return cut;
}

Order cut_peaks(const Graph& graph, Order order) {
  if (graph.nodes == 0) return order;
  Peak peak = peak_of(graph, order);
  for (int round = 0; round < kRounds; ++round) {
    const NodeCut cut = cut_at(graph, peak.node);
    Order next = order;
    std::stable_partition(next.begin(), next.end(), [&](int node) { return cut.done[node]; });
    next = tighten(graph, std::move(next));
    const Peak next_peak = peak_of(graph, next);
    if (std::tie(next_peak.bytes, next_peak.count) >= std::tie(peak.bytes, peak.count)) break;
    order = std::move(next);
    peak = next_peak;
  }
  return order;
}

void register_node_cut(nb::module_& m) {
  m.def(
      "cut_peaks",
      [](const Graph& graph, const Input<std::int64_t>& order) {
        Order result = read_order(graph, order);
        {
          nb::gil_scoped_release released;
          result = cut_peaks(graph, std::move(result));
        }
        return to_numpy(result);
      },
      nb::arg("graph"), nb::arg("order"));
}

}  // namespace xla_stalloc
