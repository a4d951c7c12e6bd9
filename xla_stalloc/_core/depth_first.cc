#include "depth_first.h"

#include <algorithm>
#include <numeric>

#include "arrays.h"

namespace xla_stalloc {

namespace {

// Each node stands for the tree below it that a depth-first search would own: a node belongs to its first successor.
// Returns the peak of each tree when it runs alone, less what it leaves behind.
std::vector<std::int64_t> subtree_keys(const Graph& graph) {
  std::vector<std::int64_t> own(graph.nodes, 0), left(graph.nodes, 0);  // born at the node; left when it is done
  for (int buffer = 0; buffer < graph.buffers; ++buffer) {
    const Csr::Row nodes = graph.touches[buffer];
    const auto [first, last] = std::minmax_element(nodes.begin(), nodes.end());
    if (graph.live_in[buffer]) continue;
    own[*first] += graph.size[buffer];
    if (*first != *last || graph.live_out[buffer]) left[*first] += graph.size[buffer];
  }
  std::vector<std::int64_t> peak(graph.nodes, 0), key(graph.nodes, 0);
  std::vector<char> owned(graph.nodes, 0);
  std::vector<std::int32_t> children;
  for (int node = 0; node < graph.nodes; ++node) {
    children.clear();
    for (const std::int32_t child : graph.predecessors[node])
      if (!owned[child]) owned[child] = 1, children.push_back(child);
    std::stable_sort(children.begin(), children.end(), [&](int a, int b) { return key[a] > key[b]; });
    std::int64_t resident = 0;
    for (const std::int32_t child : children) {
      peak[node] = std::max(peak[node], resident + peak[child]);
      resident += left[child];
    }
    peak[node] = std::max(peak[node], resident + own[node] + graph.lump[node]);
    key[node] = peak[node] - left[node];
  }
  return key;
}

}  // namespace

Order depth_first(const Graph& graph, ChildOrder child_order) {
  std::vector<std::int64_t> key(graph.nodes);
  switch (child_order) {
    case ChildOrder::kEarliestFirst:
      std::iota(key.begin(), key.end(), 0);
      break;
    case ChildOrder::kLatestFirst:
      for (int node = 0; node < graph.nodes; ++node) key[node] = -node;
      break;
    case ChildOrder::kShallowestFirst:
      for (int node = 0; node < graph.nodes; ++node)
        for (const std::int32_t predecessor : graph.predecessors[node])
          key[node] = std::max(key[node], key[predecessor] + 1);
      break;
    case ChildOrder::kHillValley:
      key = subtree_keys(graph);
      for (std::int64_t& value : key) value = -value;
      break;
  }
  const auto sorted = [&](std::vector<std::int32_t> nodes) {
    std::stable_sort(nodes.begin(), nodes.end(), [&](int a, int b) { return key[a] < key[b]; });
    return nodes;
  };

  std::vector<std::int32_t> sinks;
  for (int node = 0; node < graph.nodes; ++node)
    if (graph.successors[node].empty()) sinks.push_back(node);

  struct Visit {
    std::int32_t node;
    std::vector<std::int32_t> children;
    std::size_t next = 0;
  };
  Order order;
  order.reserve(graph.nodes);
  std::vector<char> visited(graph.nodes, 0);
  std::vector<Visit> stack;
  const auto visit = [&](std::int32_t node) {
    visited[node] = 1;
    const Csr::Row row = graph.predecessors[node];
    stack.push_back({node, sorted({row.begin(), row.end()})});
  };
  for (const std::int32_t sink : sorted(std::move(sinks))) {
    visit(sink);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next == top.children.size()) {
        order.push_back(top.node);
        stack.pop_back();
      } else if (const std::int32_t child = top.children[top.next++]; !visited[child]) {
        visit(child);
      }
    }
  }
  return order;
}

void register_depth_first(nb::module_& m) {
  nb::enum_<ChildOrder>(m, "ChildOrder")
      .value("EARLIEST_FIRST", ChildOrder::kEarliestFirst)
      .value("LATEST_FIRST", ChildOrder::kLatestFirst)
      .value("SHALLOWEST_FIRST", ChildOrder::kShallowestFirst)
      .value("HILL_VALLEY", ChildOrder::kHillValley);
  m.def(
      "depth_first",
      [](const Graph& graph, ChildOrder child_order) {
        Order order;
        {
          nb::gil_scoped_release released;
          order = depth_first(graph, child_order);
        }
        return to_numpy(order);
      },
      nb::arg("graph"), nb::arg("child_order"));
}

}  // namespace xla_stalloc
