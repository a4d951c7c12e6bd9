#include "node_cut.h"

#include <algorithm>
#include <utility>

#include "arrays.h"
#include "max_flow.h"
#include "memory_profile.h"
#include "tighten.h"

namespace xla_stalloc {

namespace {

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

}  // namespace

// The cut is between what must be done and what must be to come. A buffer costs its size if it is touched on both
// sides: its touches lead into an edge of that capacity, and back out of it, without limit.
NodeCut cut_at(const Graph& graph, int node) {
  const std::vector<Side> side = sides_of(graph, node);
  constexpr int kSource = 0, kSink = 1;
  int vertices = 2;
  std::vector<std::int32_t> vertex(graph.nodes);
  for (int other = 0; other < graph.nodes; ++other)
    vertex[other] = side[other] == kDone ? kSource : side[other] == kToCome ? kSink : vertices++;

  MaxFlow flow(vertices + 2 * graph.buffers);
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
    const int begin = vertices + 2 * buffer, end = begin + 1;
    flow.add_edge(begin, end, graph.size[buffer]);
    if (born) flow.add_edge(kSource, begin, MaxFlow::kUnlimited);
    if (needed) flow.add_edge(end, kSink, MaxFlow::kUnlimited);
    for (const std::int32_t other : graph.touches[buffer]) {
      if (side[other] != kEither) continue;
      flow.add_edge(vertex[other], begin, MaxFlow::kUnlimited);
      flow.add_edge(end, vertex[other], MaxFlow::kUnlimited);
    }
  }
  cut.bytes += flow.run(kSource, kSink);
  for (int other = 0; other < graph.nodes; ++other) cut.done[other] = flow.on_source_side(vertex[other]);
  return cut;
}

Order cut_peaks(const Graph& graph, Order order) {
  std::int64_t peak = MemoryProfile(graph, order).peak();
  while (true) {
    const MemoryProfile profile(graph, order);
    const auto hot = std::find_if(order.begin(), order.end(), [&](int node) {
      return profile.memory(profile.position(node)) == peak;
    });
    if (hot == order.end()) return order;
    const std::int32_t node = *hot;
    const NodeCut cut = cut_at(graph, node);
    Order next = order;
    std::stable_partition(next.begin(), next.end(), [&](int other) { return cut.done[other]; });
    next = tighten(graph, std::move(next));
    const std::int64_t next_peak = MemoryProfile(graph, next).peak();
    if (next_peak >= peak) return order;
    peak = next_peak;
    order = std::move(next);
  }
}

void register_node_cut(nb::module_& m) {
  m.def(
      "cut_peaks",
      [](const Graph& graph, const Input<std::int64_t>& order) {
        Order result = to_vector<std::int32_t>(order);
        {
          nb::gil_scoped_release released;
          result = cut_peaks(graph, std::move(result));
        }
        return to_numpy(result);
      },
      nb::arg("graph"), nb::arg("order"));
}

}  // namespace xla_stalloc
