#include "order_heap.h"

#include <utility>

#include "arrays.h"
#include "memory_profile.h"

namespace xla_stalloc {

namespace {

class HeapTrace {
 public:
  HeapTrace(const Graph& graph, const Order& order)
      : graph_(graph), profile_(graph, order), item_(graph.buffers, -1), born_at_(graph.buffers, -1) {
    for (int buffer = 0; buffer < graph.buffers; ++buffer)
      if (profile_.first(buffer) < 0) open(buffer, new_item(graph.size[buffer]));
    for (int position = 0; position < graph.nodes; ++position) run(position);
    for (int buffer = 0; buffer < graph.buffers; ++buffer)
      if (profile_.last(buffer) == graph.nodes) close(buffer);
  }

  Heap heap(std::int64_t alignment) const {
    std::vector<std::int32_t> offsets{0}, lives;
    std::vector<std::int64_t> starts, ends, ids;
    for (const auto& item : lives_) {
      for (const auto& [start, end] : item) {
        lives.push_back(static_cast<std::int32_t>(lives.size()));
        starts.push_back(start);
        ends.push_back(end);
      }
      offsets.push_back(static_cast<std::int32_t>(lives.size()));
      ids.push_back(static_cast<std::int64_t>(ids.size()));
    }
    Csr rows(std::move(offsets), std::move(lives));
    return {sizes_, std::move(rows), std::move(starts), std::move(ends), std::move(ids), alignment};
  }

 private:
  void run(int position) {
    const int node = profile_.order()[position];
    const auto born_here = [&](int buffer) { return profile_.first(buffer) == position; };
    const auto dies_here = [&](int buffer) { return profile_.last(buffer) == position; };
    for_each_take_over(
        graph_, node, taken_, born_here, [&](int host) { return dies_here(host) && !born_here(host); },
        [&](int buffer, int host) {
          close(host);
          open(buffer, item_[host]);
        });
    for (const std::int32_t buffer : graph_.touched[node])
      if (born_here(buffer) && item_[buffer] < 0) open(buffer, new_item(graph_.size[buffer]));
    if (graph_.lump[node] > 0) {
      lives_[new_item(graph_.lump[node])].emplace_back(clock_, clock_);
      ++clock_;
    }
    for (const std::int32_t buffer : graph_.touched[node])
      if (dies_here(buffer) && born_at_[buffer] >= 0) close(buffer);
  }

  int new_item(std::int64_t size) {
    sizes_.push_back(size);
    lives_.emplace_back();
    return static_cast<int>(sizes_.size()) - 1;
  }

  void open(int buffer, int item) {
    item_[buffer] = item;
    born_at_[buffer] = clock_++;
  }

  void close(int buffer) {
    lives_[item_[buffer]].emplace_back(born_at_[buffer], clock_++);
    born_at_[buffer] = -1;
  }

  const Graph& graph_;
  const MemoryProfile profile_;
  std::vector<std::int32_t> item_;          // of each buffer; -1: not born yet
  std::vector<std::int64_t> born_at_;       // of each buffer; -1: not alive
  std::vector<std::int64_t> sizes_;         // of each item
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> lives_;  // of each item
  std::vector<std::int32_t> taken_;
  std::int64_t clock_ = 0;
};

}  // namespace

Heap heap_of(const Graph& graph, const Order& order, std::int64_t alignment) {
  return HeapTrace(graph, order).heap(alignment);
}

void register_order_heap(nb::module_& m) {
  m.def(
      "heap_height",
      [](const Graph& graph, const Input<std::int64_t>& order, std::int64_t alignment) {
        const Order nodes = read_order(graph, order);
        nb::gil_scoped_release released;
        return best_fit(heap_of(graph, nodes, alignment)).height;
      },
      nb::arg("graph"), nb::arg("order"), nb::arg("alignment"));
}

}  // namespace xla_stalloc
