#include "ordered_fit.h"

#include <algorithm>
#include <cmath>

#include <nanobind/stl/pair.h>

#include "arrays.h"

namespace xla_stalloc {

OrderedFit::OrderedFit(const Sections& sections, Blocks blocks)
    : sections_(sections), blocks_(std::move(blocks)), occupancy_(std::max(sections.count, 1)) {}

void OrderedFit::reset() {
  occupancy_.clear();
  log_.clear();
  gone_.clear();
  marks_.clear();
  offsets_.assign(blocks_.alignments.size(), 0);
  for (const auto& [piece, offset] : pinned_)
    occupancy_.insert(sections_.first[piece], sections_.last[piece] - 1, {offset, offset + sections_.size[piece]});
}

std::int64_t OrderedFit::place(const std::vector<std::int32_t>& order, std::int64_t limit, Stop& stop) {
  logging_ = false;
  reset();
  std::int64_t height = 0;
  for (const std::int32_t block : order) {
    const std::int64_t offset = lowest(block);
    insert(block, offset);
    height = std::max(height, top(block, offset));
    if (height > limit) break;
    if (stop()) return kUnlimited;
  }
  return height;
}

void OrderedFit::fill(const std::vector<std::int32_t>& order, std::int64_t limit, Stop& stop) {
  logging_ = false;
  reset();
  for (const std::int32_t block : order) {
    const std::int64_t offset = stop() ? limit : lowest(block);
    if (top(block, offset) > limit) {
      offsets_[block] = -1;
    } else {
      insert(block, offset);
    }
  }
}

bool OrderedFit::repair(std::vector<std::int32_t> order, std::int64_t target, std::int64_t placements,
                        std::uint64_t seed, Stop& stop) {
  logging_ = true;
  reset();
  Random random(seed);
  std::vector<int> moves(blocks_.alignments.size(), 0);
  const int count = static_cast<int>(order.size());
  for (int done = 0; done < count; --placements) {
    if (placements <= 0 || stop()) return false;
    const std::int32_t block = order[done];
    const std::int64_t offset = lowest(block);
    if (top(block, offset) <= target) {
      insert(block, offset);
      ++done;
      continue;
    }
    // Past so many blocks that are in its way; twice as many, on average, each time it comes to this.
    if (done == 0) return false;
    const int reach = std::min(++moves[block], 24);
    std::int64_t past = 1 + (static_cast<std::int64_t>(random.below(1 << 16)) << reach >> 12);
    int to = done - 1;
    while (to > 0 && !(meets(order[to], block) && --past <= 0)) --to;
    for (int undone = done; undone > to; --undone) take_back();
    std::rotate(order.begin() + to, order.begin() + done, order.begin() + done + 1);
    done = to;
  }
  return true;
}

// The cursors take turns: each moves the offset up past what it cannot share, until all have agreed to one offset.
std::int64_t OrderedFit::lowest(int block) {
  cursors_.clear();
  for (const std::int32_t piece : blocks_.pieces[block]) {
    const std::int64_t size = sections_.size[piece];
    occupancy_.collect(sections_.first[piece], sections_.last[piece] - 1, [&](const std::vector<Range>& ranges) {
      cursors_.push_back({ranges.begin(), ranges.end(), size});
    });
  }
  const std::int64_t alignment = blocks_.alignments[block];
  const std::size_t count = cursors_.size();
  std::int64_t offset = 0;
  std::size_t agreed = 0;
  for (std::size_t c = 0; agreed < count; c = c + 1 == count ? 0 : c + 1) {
    Cursor& cursor = cursors_[c];
    if (cursor.end - cursor.next > 16 && (cursor.next + 8)->second <= offset)
      cursor.next = std::lower_bound(cursor.next, cursor.end, offset,
                                     [](const Range& range, std::int64_t o) { return range.second <= o; });
    ++agreed;
    for (; cursor.next != cursor.end && cursor.next->first < offset + cursor.size; ++cursor.next) {
      if (cursor.next->second <= offset) continue;
      offset = (cursor.next->second + alignment - 1) / alignment * alignment;
      agreed = 1;
    }
  }
  return offset;
}

std::int64_t OrderedFit::top(int block, std::int64_t offset) const {
  std::int64_t size = 0;
  for (const std::int32_t piece : blocks_.pieces[block]) size = std::max(size, sections_.size[piece]);
  return offset + size;
}

void OrderedFit::insert(int block, std::int64_t offset) {
  offsets_[block] = offset;
  if (logging_) marks_.push_back(log_.size());
  for (const std::int32_t piece : blocks_.pieces[block]) {
    const Range range{offset, offset + sections_.size[piece]};
    const int first = sections_.first[piece], last = sections_.last[piece] - 1;
    if (!logging_) {
      occupancy_.insert(first, last, range);
      continue;
    }
    occupancy_.insert(first, last, range, [&](RangeSet& set, const RangeSet::Change& change) {
      log_.push_back({&set, change.place, static_cast<std::size_t>(change.end - change.begin)});
      gone_.insert(gone_.end(), change.begin, change.end);
    });
  }
}

void OrderedFit::take_back() {
  for (; log_.size() > marks_.back(); log_.pop_back()) {
    const Logged& change = log_.back();
    const Range* end = gone_.data() + gone_.size();
    change.set->restore(change.place, end - change.ranges, end);
    gone_.resize(gone_.size() - change.ranges);
  }
  marks_.pop_back();
}

bool OrderedFit::meets(int a, int b) const {
  for (const std::int32_t p : blocks_.pieces[a]) {
    for (const std::int32_t q : blocks_.pieces[b]) {
      if (sections_.first[p] < sections_.last[q] && sections_.first[q] < sections_.last[p]) return true;
    }
  }
  return false;
}

void register_ordered_fit(nb::module_& m) {
  nb::class_<OrderedFit>(m, "OrderedFit")
      .def(
          "__init__",
          [](OrderedFit* self, const Sections& sections, const Input<std::int64_t>& piece_offsets,
             const Input<std::int64_t>& pieces, const Input<std::int64_t>& alignments) {
            new (self) OrderedFit(sections, {{to_vector<std::int32_t>(piece_offsets), to_vector<std::int32_t>(pieces)},
                                             to_vector<std::int64_t>(alignments)});
          },
          nb::arg("sections"), nb::arg("piece_offsets"), nb::arg("pieces"), nb::arg("alignments"),
          nb::keep_alive<1, 2>())
      .def("pin", &OrderedFit::pin, nb::arg("piece"), nb::arg("offset"))
      .def(
          "place",
          [](OrderedFit& self, const Input<std::int64_t>& order, std::int64_t limit, double seconds) {
            Stop stop(seconds);
            std::int64_t height;
            {
              nb::gil_scoped_release released;
              height = self.place(to_vector<std::int32_t>(order), limit, stop);
            }
            stop.rethrow();
            return std::make_pair(height, to_numpy(height <= limit ? self.offsets() : std::vector<std::int64_t>()));
          },
          nb::arg("order"), nb::arg("limit"), nb::arg("seconds"))
      .def(
          "fill",
          [](OrderedFit& self, const Input<std::int64_t>& order, std::int64_t limit, double seconds) {
            Stop stop(seconds);
            {
              nb::gil_scoped_release released;
              self.fill(to_vector<std::int32_t>(order), limit, stop);
            }
            stop.rethrow();
            return to_numpy(self.offsets());
          },
          nb::arg("order"), nb::arg("limit"), nb::arg("seconds"))
      .def(
          "repair",
          [](OrderedFit& self, const Input<std::int64_t>& order, std::int64_t target, std::int64_t placements,
             std::uint64_t seed, double seconds) {
            Stop stop(seconds);
            bool fits;
            {
              nb::gil_scoped_release released;
              fits = self.repair(to_vector<std::int32_t>(order), target, placements, seed, stop);
            }
            stop.rethrow();
            return std::make_pair(fits, to_numpy(fits ? self.offsets() : std::vector<std::int64_t>()));
          },
          nb::arg("order"), nb::arg("target"), nb::arg("placements"), nb::arg("seed"), nb::arg("seconds"));
}

}  // namespace xla_stalloc
