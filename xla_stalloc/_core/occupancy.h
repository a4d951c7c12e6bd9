// Which offsets are in use when: a segment tree over time that holds ranges of offsets rather than items.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace xla_stalloc {

using Range = std::pair<std::int64_t, std::int64_t>;  // of offsets, [begin, end)

// Disjoint ranges, ascending; ranges that touch become one, so a well-filled heap stays a handful of ranges.
class RangeSet {
 public:
  // What an insertion changed: the range at `place` took the place of those ranges.
  struct Change {
    std::size_t place;
    std::vector<Range>::const_iterator begin, end;  // valid until the set changes
  };

  // Calls `before(change)` while the ranges that go are still there.
  template <typename Before>
  void insert(Range range, const Before& before) {
    auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), range.first,
                                  [](const Range& r, std::int64_t offset) { return r.second < offset; });
    auto end = begin;
    for (; end != ranges_.end() && end->first <= range.second; ++end) {
      range.first = std::min(range.first, end->first);
      range.second = std::max(range.second, end->second);
    }
    if (end - begin == 1 && *begin == range) return;
    before(Change{static_cast<std::size_t>(begin - ranges_.begin()), begin, end});
    if (begin == end) {
      ranges_.insert(begin, range);
    } else {
      *begin = range;
      ranges_.erase(begin + 1, end);
    }
  }

  // Takes an insertion back, the latest first.
  void restore(std::size_t place, const Range* begin, const Range* end) {
    const auto at = ranges_.begin() + static_cast<std::ptrdiff_t>(place);
    if (begin == end) {
      ranges_.erase(at);
    } else {
      *at = *begin;
      ranges_.insert(at + 1, begin + 1, end);
    }
  }

  void clear() { ranges_.clear(); }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

class Occupancy {
 public:
  // Times from 0 up to this many.
  explicit Occupancy(int times) {
    while (leaves_ < times) leaves_ *= 2;
    covered_.resize(2 * static_cast<std::size_t>(leaves_));
    touched_.resize(2 * static_cast<std::size_t>(leaves_));
  }

  void insert(int first, int last, Range range) {
    insert(first, last, range, [](RangeSet&, const RangeSet::Change&) {});
  }

  // Calls `before(set, change)` for each set that changes.
  template <typename Before>
  void insert(int first, int last, Range range, const Before& before) {
    walk(1, 0, leaves_ - 1, first, last, [&](int tree, bool inside) {
      touched_[tree].insert(range, [&](const RangeSet::Change& change) { before(touched_[tree], change); });
      if (inside) covered_[tree].insert(range, [&](const RangeSet::Change& change) { before(covered_[tree], change); });
    });
  }

  // Calls `visit(ranges)` with sets whose union is what is in use at some time from `first` to `last`, both inclusive.
  template <typename Visit>
  void collect(int first, int last, const Visit& visit) const {
    walk(1, 0, leaves_ - 1, first, last, [&](int tree, bool inside) {
      const std::vector<Range>& ranges = (inside ? touched_ : covered_)[tree].ranges();
      if (!ranges.empty()) visit(ranges);
    });
  }

  void clear() {
    for (RangeSet& set : covered_) set.clear();
    for (RangeSet& set : touched_) set.clear();
  }

 private:
  // Visits the trees that lie inside [first, last], and those above them.
  template <typename Visit>
  static void walk(int tree, int begin, int end, int first, int last, const Visit& visit) {
    const bool inside = first <= begin && end <= last;
    visit(tree, inside);
    if (inside) return;
    const int middle = begin + (end - begin) / 2;
    if (first <= middle) walk(2 * tree, begin, middle, first, last, visit);
    if (last > middle) walk(2 * tree + 1, middle + 1, end, first, last, visit);
  }

  int leaves_ = 1;
  std::vector<RangeSet> covered_;  // of each tree: offsets used during all of it
  std::vector<RangeSet> touched_;  // of each tree: offsets used during some of it
};

}  // namespace xla_stalloc
