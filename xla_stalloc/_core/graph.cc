#include "graph.h"

#include <numeric>

namespace xla_stalloc {

Csr Csr::transposed(int columns) const {
  std::vector<std::int32_t> offsets(columns + 1, 0), items(items_.size());
  for (const std::int32_t column : items_) ++offsets[column + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<std::int32_t> next(offsets.begin(), offsets.end() - 1);
  for (int row = 0; row < rows(); ++row)
    for (const std::int32_t column : (*this)[row]) items[next[column]++] = row;
  return {std::move(offsets), std::move(items)};
}

namespace {

Csr read_csr(const Input<std::int64_t>& offsets, const Input<std::int64_t>& items) {
  return {to_vector<std::int32_t>(offsets), to_vector<std::int32_t>(items)};
}

// A storage can only be taken over by a buffer of its own size: dropping the rest here spares every replay the test.
Csr same_size_only(const Csr& reuses, const std::vector<std::int64_t>& size) {
  std::vector<std::int32_t> offsets{0}, items;
  for (int buffer = 0; buffer < reuses.rows(); ++buffer) {
    for (const std::int32_t other : reuses[buffer])
      if (size[other] == size[buffer]) items.push_back(other);
    offsets.push_back(static_cast<std::int32_t>(items.size()));
  }
  return {std::move(offsets), std::move(items)};
}

}  // namespace

Order read_order(const Graph& graph, const Input<std::int64_t>& order) {
  std::vector<char> seen(graph.nodes, 0);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int64_t node = order.data()[k];
    if (node < 0 || node >= graph.nodes || seen[node]) throw nb::value_error("the order must hold every node once");
    seen[node] = 1;
  }
  if (static_cast<int>(order.size()) != graph.nodes) throw nb::value_error("the order must hold every node once");
  return to_vector<std::int32_t>(order);
}

void register_graph(nb::module_& m) {
  nb::class_<Graph>(m, "Graph").def(
      "__init__",
      [](Graph* graph, const Input<std::int64_t>& predecessor_offsets, const Input<std::int64_t>& predecessors,
         const Input<std::int64_t>& lump_bytes, const Input<std::int64_t>& buffer_bytes,
         const Input<std::int64_t>& touch_offsets, const Input<std::int64_t>& touches,
         const Input<std::int64_t>& reuse_offsets, const Input<std::int64_t>& reuses, const Input<bool>& live_in,
         const Input<bool>& live_out) {
        new (graph) Graph();
        graph->nodes = static_cast<int>(lump_bytes.size());
        graph->buffers = static_cast<int>(buffer_bytes.size());
        graph->predecessors = read_csr(predecessor_offsets, predecessors);
        graph->successors = graph->predecessors.transposed(graph->nodes);
        graph->lump = to_vector<std::int64_t>(lump_bytes);
        graph->size = to_vector<std::int64_t>(buffer_bytes);
        graph->touches = read_csr(touch_offsets, touches);
        graph->touched = graph->touches.transposed(graph->nodes);
        graph->reuses = same_size_only(read_csr(reuse_offsets, reuses), graph->size);
        graph->live_in = to_vector<char>(live_in);
        graph->live_out = to_vector<char>(live_out);
        graph->may_reuse.assign(graph->nodes, 0);
        for (int buffer = 0; buffer < graph->buffers; ++buffer)
          if (!graph->reuses[buffer].empty())
            for (const std::int32_t node : graph->touches[buffer]) graph->may_reuse[node] = 1;
      },
      nb::arg("predecessor_offsets"), nb::arg("predecessors"), nb::arg("lump_bytes"), nb::arg("buffer_bytes"),
      nb::arg("touch_offsets"), nb::arg("touches"), nb::arg("reuse_offsets"), nb::arg("reuses"), nb::arg("live_in"),
      nb::arg("live_out"));
}

}  // namespace xla_stalloc
