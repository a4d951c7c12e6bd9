#include "best_fit.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include <nanobind/stl/pair.h>

#include "arrays.h"
#include "occupancy.h"

namespace xla_stalloc {

namespace {

constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

// The union of sets that are added one by one: equal-sized ones are merged first, as in a merge sort.
class Union {
 public:
  void clear() { depth_ = 0; }

  void add(const std::vector<Range>& ranges) {
    if (depth_ == stack_.size()) stack_.emplace_back();
    stack_[depth_++].assign(ranges.begin(), ranges.end());
    while (depth_ > 1 && stack_[depth_ - 2].size() <= 2 * stack_[depth_ - 1].size()) merge_top();
  }

  // Ascending and disjoint.
  const std::vector<Range>& ranges() {
    while (depth_ > 1) merge_top();
    if (depth_ == 0) scratch_.clear();
    return depth_ == 0 ? scratch_ : stack_[0];
  }

 private:
  void merge_top() {
    const std::vector<Range>&a = stack_[depth_ - 2], &b = stack_[depth_ - 1];
    scratch_.clear();
    for (auto i = a.begin(), j = b.begin(); i != a.end() || j != b.end();) {
      const bool from_a = j == b.end() || (i != a.end() && i->first <= j->first);
      const Range range = from_a ? *i++ : *j++;
      if (scratch_.empty() || scratch_.back().second < range.first) {
        scratch_.push_back(range);
      } else {
        scratch_.back().second = std::max(scratch_.back().second, range.second);
      }
    }
    stack_[depth_ - 2].swap(scratch_);
    --depth_;
  }

  std::vector<std::vector<Range>> stack_;
  std::size_t depth_ = 0;
  std::vector<Range> scratch_;
};

// The start of the smallest hole that takes the size, the lowest one on a tie.
std::int64_t best_hole(const std::vector<Range>& used, std::int64_t size) {
  std::int64_t offset = -1, least = kEndless, free_from = 0;
  for (const Range& range : used) {
    const std::int64_t hole = range.first - free_from;
    if (hole >= size && hole < least) {
      least = hole;
      offset = free_from;
    }
    free_from = range.second;
  }
  return offset >= 0 ? offset : free_from;
}

// Items in this order; gives up, with at least that height, once the heap is as high as `limit`.
Placement place(const Heap& heap, const std::vector<std::int32_t>& order, const std::vector<std::int32_t>& firsts,
                const std::vector<std::int32_t>& lasts, int times, std::int64_t limit, Stop* stop) {
  Placement placement{0, std::vector<std::int64_t>(heap.sizes.size(), 0)};
  Occupancy occupancy(times);
  Union used;
  for (const std::int32_t item : order) {
    const std::int64_t size = heap.sizes[item];
    used.clear();
    for (const std::int32_t life : heap.lives[item])
      occupancy.collect(firsts[life], lasts[life], [&](const std::vector<Range>& ranges) { used.add(ranges); });
    const std::int64_t offset = best_hole(used.ranges(), size);
    // Space up to the next aligned offset is of no use to anyone: count it as used.
    const std::int64_t end = (offset + size + heap.alignment - 1) / heap.alignment * heap.alignment;
    for (const std::int32_t life : heap.lives[item]) occupancy.insert(firsts[life], lasts[life], {offset, end});
    placement.offsets[item] = offset;
    placement.height = std::max(placement.height, offset + size);
    if (stop != nullptr && (*stop)()) placement.height = limit;
    if (placement.height >= limit) break;
  }
  return placement;
}

}  // namespace

Placement best_fit(const Heap& heap, std::int64_t limit, Stop* stop) {
  std::vector<std::int64_t> times(heap.starts);
  times.insert(times.end(), heap.ends.begin(), heap.ends.end());
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto ranks = [&](const std::vector<std::int64_t>& values) {
    std::vector<std::int32_t> result(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      result[i] = static_cast<std::int32_t>(std::lower_bound(times.begin(), times.end(), values[i]) - times.begin());
    return result;
  };
  const std::vector<std::int32_t> firsts = ranks(heap.starts), lasts = ranks(heap.ends);

  std::vector<std::int32_t> items;
  std::vector<std::int64_t> own(heap.sizes.size(), 0), overall(heap.sizes.size(), 0);  // durations
  for (int item = 0; item < heap.lives.rows(); ++item) {
    if (heap.sizes[item] == 0) continue;  // XLA gives them offset 0
    items.push_back(item);
    std::int64_t start = kEndless, end = -1;
    for (const std::int32_t life : heap.lives[item]) {
      start = std::min(start, heap.starts[life]);
      end = std::max(end, heap.ends[life]);
    }
    const std::int32_t first_life = *heap.lives[item].begin();
    own[item] = heap.ends[first_life] - heap.starts[first_life];
    overall[item] = end - start;
  }
  const auto sorted_by = [&](const auto& key) {
    std::vector<std::int32_t> order(items);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
    return order;
  };
  const auto spatial = sorted_by([&](int i) { return std::make_tuple(-heap.sizes[i], -own[i], heap.ids[i]); });
  const auto temporal = sorted_by([&](int i) { return std::make_tuple(-overall[i], -heap.sizes[i], heap.ids[i]); });

  const int count = static_cast<int>(times.size());
  Placement by_size = place(heap, spatial, firsts, lasts, count, limit, stop);
  Placement by_duration = place(heap, temporal, firsts, lasts, count, std::min(by_size.height, limit), stop);
  return by_duration.height < by_size.height ? by_duration : by_size;
}

void register_best_fit(nb::module_& m) {
  m.def(
      "best_fit",
      [](const Input<std::int64_t>& sizes, const Input<std::int64_t>& life_offsets, const Input<std::int64_t>& starts,
         const Input<std::int64_t>& ends, const Input<std::int64_t>& ids, std::int64_t alignment,
         std::int64_t limit, double seconds) {
        Stop stop(seconds);
        Placement placement;
        {
          nb::gil_scoped_release released;
          std::vector<std::int32_t> lives(starts.size());
          std::iota(lives.begin(), lives.end(), 0);
          placement = best_fit({to_vector<std::int64_t>(sizes),
                                {to_vector<std::int32_t>(life_offsets), std::move(lives)},
                                to_vector<std::int64_t>(starts), to_vector<std::int64_t>(ends),
                                to_vector<std::int64_t>(ids), alignment},
                               limit, &stop);
        }
        stop.rethrow();
        return std::make_pair(placement.height, to_numpy(placement.offsets));
      },
      nb::arg("sizes"), nb::arg("interval_offsets"), nb::arg("starts"), nb::arg("ends"), nb::arg("ids"),
      nb::arg("alignment"), nb::arg("limit") = std::numeric_limits<std::int64_t>::max(),
      nb::arg("seconds") = std::numeric_limits<double>::infinity());
}

}  // namespace xla_stalloc
