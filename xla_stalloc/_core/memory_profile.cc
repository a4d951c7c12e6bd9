#include "memory_profile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "arrays.h"

namespace xla_stalloc {

namespace {

constexpr std::int32_t kBefore = -2;  // born before the stretch
constexpr std::int32_t kLater = -1;   // not born yet; or dies behind the stretch
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

}  // namespace

MemoryProfile::MemoryProfile(const Graph& graph, Order order)
    : graph_(graph),
      order_(std::move(order)),
      position_(graph.nodes),
      first_(graph.buffers),
      last_(graph.buffers),
      memory_(graph.nodes),
      resident_(graph.nodes),
      stamp_(graph.buffers, 0),
      birth_(graph.buffers),
      death_(graph.buffers) {
  // Everything is born and dies inside the stretch [0, nodes), except what the outside keeps alive.
  for (int buffer = 0; buffer < graph.buffers; ++buffer) {
    first_[buffer] = graph.live_in[buffer] ? -1 : 0;
    last_[buffer] = graph.live_out[buffer] ? graph.nodes : 0;
    if (graph.live_in[buffer]) resident_at_start_ += graph.size[buffer];
  }
  replay(0, order_, 0, kNoLimit);
  commit();
}

std::int64_t MemoryProfile::peak() const {
  return memory_.empty() ? 0 : *std::max_element(memory_.begin(), memory_.end());
}

std::int64_t MemoryProfile::excess(int begin, int end, std::int64_t ceiling) const {
  std::int64_t sum = 0;
  for (int k = begin; k < end; ++k) sum += std::max<std::int64_t>(0, memory_[k] - ceiling);
  return sum;
}

std::int64_t MemoryProfile::replay(int begin, const Order& nodes, std::int64_t ceiling, std::int64_t enough) {
  const int steps = static_cast<int>(nodes.size());
  const int end = begin + steps;
  begin_ = begin;
  nodes_.assign(nodes.begin(), nodes.end());
  new_memory_.resize(steps);
  new_resident_.resize(steps);
  seen_.clear();
  ++epoch_;
  for (int step = steps - 1; step >= 0; --step) {
    for (const std::int32_t buffer : graph_.touched[nodes[step]]) {
      if (stamp_[buffer] == epoch_) continue;
      stamp_[buffer] = epoch_;
      seen_.push_back(buffer);
      birth_[buffer] = first_[buffer] < begin ? kBefore : kLater;
      death_[buffer] = last_[buffer] < end ? step : kLater;
    }
  }
  std::int64_t resident = begin == 0 ? resident_at_start_ : resident_[begin - 1];
  std::int64_t sum = 0;
  for (int step = 0; step < steps; ++step) {
    const int node = nodes[step];
    const Csr::Row touched = graph_.touched[node];
    std::int64_t freed = 0;
    for (const std::int32_t buffer : touched) {
      if (birth_[buffer] == kLater) {
        birth_[buffer] = step;
        resident += graph_.size[buffer];
      }
      if (death_[buffer] == step) freed += graph_.size[buffer];
    }
    std::int64_t memory = resident + graph_.lump[node];
    if (freed > 0) memory -= taken_over(step, node);
    resident -= freed;
    new_memory_[step] = memory;
    new_resident_[step] = resident;
    sum += std::max<std::int64_t>(0, memory - ceiling);
    if (sum > enough) break;
  }
  return sum;
}

// Bytes at this step that are counted twice: a buffer born here in the storage of one that was there and dies here.
std::int64_t MemoryProfile::taken_over(int step, int node) {
  std::int64_t bytes = 0;
  for_each_take_over(
      graph_, node, taken_, [&](int buffer) { return birth_[buffer] == step; },
      [&](int host) { return stamp_[host] == epoch_ && death_[host] == step && birth_[host] != step; },
      [&](int buffer, int) { bytes += graph_.size[buffer]; });
  return bytes;
}

void MemoryProfile::commit() {
  for (std::size_t step = 0; step < nodes_.size(); ++step) {
    const int position = begin_ + static_cast<int>(step);
    order_[position] = nodes_[step];
    position_[nodes_[step]] = position;
    memory_[position] = new_memory_[step];
    resident_[position] = new_resident_[step];
  }
  for (const std::int32_t buffer : seen_) {
    if (birth_[buffer] >= 0) first_[buffer] = begin_ + birth_[buffer];
    if (death_[buffer] >= 0) last_[buffer] = begin_ + death_[buffer];
  }
}

void register_memory_profile(nb::module_& m) {
  m.def(
      "memory_profile",
      [](const Graph& graph, const Input<std::int64_t>& order) {
        Order nodes = read_order(graph, order);
        std::vector<std::int64_t> memory(graph.nodes);
        {
          nb::gil_scoped_release released;
          const MemoryProfile profile(graph, std::move(nodes));
          for (int k = 0; k < graph.nodes; ++k) memory[k] = profile.memory(k);
        }
        return to_numpy(memory);
      },
      nb::arg("graph"), nb::arg("order"));
}

}  // namespace xla_stalloc
