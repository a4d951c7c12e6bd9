#include "first_fit.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>

#include "arrays.h"
#include "random.h"

namespace xla_stalloc {

namespace {

constexpr int kRepairs = 24;    // of one order without success, then another one is tried
constexpr int kSwaps = 16;      // one in so many places changes when the best order is disturbed

class FirstFit {
 public:
  FirstFit(const Heap& heap, const FirstFitOptions& options)
      : heap_(heap), options_(options), random_(options.seed), count_(heap.lives.rows()) {
    padded_.resize(count_);
    for (int item = 0; item < count_; ++item) {
      padded_[item] = (heap.sizes[item] + heap.alignment - 1) / heap.alignment * heap.alignment;
      if (heap.sizes[item] > 0) items_.push_back(item);
    }
  }

  Placement run() {
    Placement best;
    best.height = std::numeric_limits<std::int64_t>::max();
    if (!find_neighbours()) return best;
    std::vector<std::vector<std::int32_t>> orders = first_orders();
    std::vector<std::int32_t> best_order = orders.front();
    for (std::size_t start = 0; work_ < options_.work && best.height > options_.target; ++start) {
      std::vector<std::int32_t> order = start < orders.size() ? orders[start] : disturbed(best_order);
      for (int repair = 0; repair < kRepairs && work_ < options_.work; ++repair) {
        const std::int64_t height = place(order);
        if (height < best.height) {
          best = {height, offsets_};
          best_order = order;
          repair = 0;
        }
        if (height <= options_.target) break;
        sooner(order);
      }
    }
    return best;
  }

 private:
  // Pairs of items that are live at one time; false if there are more than the work would allow to look at.
  bool find_neighbours() {
    std::vector<std::tuple<std::int64_t, bool, std::int32_t>> events;  // ends are inclusive: births come first
    for (const std::int32_t item : items_) {
      for (const std::int32_t life : heap_.lives[item]) {
        events.emplace_back(heap_.starts[life], false, item);
        events.emplace_back(heap_.ends[life], true, item);
      }
    }
    std::sort(events.begin(), events.end());
    neighbours_.resize(count_);
    std::vector<std::int32_t> alive;
    std::vector<int> lives_now(count_, 0);
    std::int64_t pairs = 0;
    for (const auto& [time, dies, item] : events) {
      if (dies) {
        if (--lives_now[item] == 0) alive.erase(std::find(alive.begin(), alive.end(), item));
        continue;
      }
      if (lives_now[item]++ > 0) continue;
      for (const std::int32_t other : alive) {
        neighbours_[item].push_back(other);
        neighbours_[other].push_back(item);
      }
      alive.push_back(item);
      pairs += static_cast<std::int64_t>(alive.size());
      if (pairs > options_.work) return false;
    }
    for (auto& others : neighbours_) {  // items with several lives may meet more than once
      std::sort(others.begin(), others.end());
      others.erase(std::unique(others.begin(), others.end()), others.end());
    }
    return true;
  }

  std::vector<std::vector<std::int32_t>> first_orders() const {
    std::vector<std::int64_t> first(count_), last(count_), area(count_);
    for (const std::int32_t item : items_) {
      first[item] = std::numeric_limits<std::int64_t>::max();
      last[item] = std::numeric_limits<std::int64_t>::min();
      std::int64_t duration = 0;
      for (const std::int32_t life : heap_.lives[item]) {
        first[item] = std::min(first[item], heap_.starts[life]);
        last[item] = std::max(last[item], heap_.ends[life]);
        duration += heap_.ends[life] - heap_.starts[life] + 1;
      }
      area[item] = duration * (heap_.sizes[item] / heap_.alignment + 1);
    }
    const auto by = [&](const auto& key) {
      std::vector<std::int32_t> order(items_);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
      return order;
    };
    return {by([&](int i) { return std::make_pair(first[i], -heap_.sizes[i]); }),
            by([&](int i) { return std::make_pair(-last[i], -heap_.sizes[i]); }),
            by([&](int i) { return std::make_pair(-area[i], first[i]); }),
            by([&](int i) { return std::make_pair(-heap_.sizes[i], first[i]); }),
            by([&](int i) { return std::make_pair(first[i] - last[i], -heap_.sizes[i]); })};
  }

  // Places everything; returns the height.
  std::int64_t place(const std::vector<std::int32_t>& order) {
    offsets_.assign(count_, -1);
    std::int64_t height = 0;
    for (const std::int32_t item : order) {
      taken_.clear();
      for (const std::int32_t other : neighbours_[item])
        if (offsets_[other] >= 0) taken_.emplace_back(offsets_[other], offsets_[other] + padded_[other]);
      std::sort(taken_.begin(), taken_.end());
      std::int64_t offset = 0;
      for (const auto& [begin, end] : taken_) {
        if (begin - offset >= padded_[item]) break;
        offset = std::max(offset, end);
      }
      offsets_[item] = offset;
      height = std::max(height, offset + heap_.sizes[item]);
      work_ += static_cast<std::int64_t>(neighbours_[item].size()) + 1;
    }
    for (std::int64_t& offset : offsets_) offset = std::max<std::int64_t>(offset, 0);  // of empty items
    return height;
  }

  // What ended above the target goes in at half its place, or a little before.
  void sooner(std::vector<std::int32_t>& order) {
    for (int place = 0; place < static_cast<int>(order.size()); ++place) {
      const std::int32_t item = order[place];
      if (offsets_[item] + heap_.sizes[item] <= options_.target) continue;
      const int to = place / 2 - random_.below(1 + place / 8);
      std::rotate(order.begin() + std::max(to, 0), order.begin() + place, order.begin() + place + 1);
    }
  }

  std::vector<std::int32_t> disturbed(std::vector<std::int32_t> order) {
    const int places = static_cast<int>(order.size());
    for (int k = 0; k < 1 + places / kSwaps; ++k) {
      const int from = random_.below(places), to = random_.below(places);
      std::swap(order[from], order[to]);
    }
    return order;
  }

  const Heap& heap_;
  const FirstFitOptions& options_;
  Random random_;
  const int count_;
  std::vector<std::int32_t> items_;   // those that are not empty
  std::vector<std::int64_t> padded_;  // of each item, bytes
  std::vector<std::vector<std::int32_t>> neighbours_;
  std::vector<std::int64_t> offsets_;  // of the last packing
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_;
  std::int64_t work_ = 0;
};

}  // namespace

Placement first_fit(const Heap& heap, const FirstFitOptions& options) { return FirstFit(heap, options).run(); }

void register_first_fit(nb::module_& m) {
  m.def(
      "first_fit",
      [](const Input<std::int64_t>& sizes, const Input<std::int64_t>& life_offsets, const Input<std::int64_t>& starts,
         const Input<std::int64_t>& ends, std::int64_t alignment, std::int64_t target, std::int64_t work,
         std::uint64_t seed) {
        Placement placement;
        {
          nb::gil_scoped_release released;
          std::vector<std::int32_t> lives(starts.size());
          std::iota(lives.begin(), lives.end(), 0);
          const Heap heap{to_vector<std::int64_t>(sizes),
                          {to_vector<std::int32_t>(life_offsets), std::move(lives)},
                          to_vector<std::int64_t>(starts),
                          to_vector<std::int64_t>(ends),
                          {},
                          alignment};
          placement = first_fit(heap, {target, work, seed});
        }
        return std::make_pair(placement.height, to_numpy(placement.offsets));
      },
      nb::arg("sizes"), nb::arg("interval_offsets"), nb::arg("starts"), nb::arg("ends"), nb::arg("alignment"),
      nb::arg("target"), nb::arg("work"), nb::arg("seed"));
}

}  // namespace xla_stalloc
