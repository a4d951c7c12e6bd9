#include "sweep.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <nanobind/stl/pair.h>

#include "arrays.h"

namespace xla_stalloc {

Sweep::Sweep(const Sections& sections, bool backward)
    : sections_(sections), born_(sections.items + 2), dies_(sections.items + 2), below_(sections.items + 2),
      above_(sections.items + 2) {
  const int items = sections.items;
  for (int item = 0; item < items; ++item) {
    born_[item] = backward ? sections.count - sections.last[item] : sections.first[item];
    dies_[item] = backward ? sections.count - sections.first[item] : sections.last[item];
  }
  // The floor is a good neighbour for everybody, the ceiling for nobody.
  dies_[items + 1] = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> births(items), deaths(items);
  std::iota(births.begin(), births.end(), 0);
  std::iota(deaths.begin(), deaths.end(), 0);
  std::sort(births.begin(), births.end(), [&](int a, int b) {
    if (born_[a] != born_[b]) return born_[a] < born_[b];
    return dies_[a] != dies_[b] ? dies_[a] > dies_[b] : a < b;  // long lives first
  });
  std::sort(deaths.begin(), deaths.end(),
            [&](int a, int b) { return dies_[a] != dies_[b] ? dies_[a] < dies_[b] : a < b; });
  events_.reserve(2 * static_cast<std::size_t>(items));
  std::size_t death = 0;
  for (const std::int32_t item : births) {
    while (dies_[deaths[death]] <= born_[item]) events_.push_back(~deaths[death++]);
    events_.push_back(item);
  }
}

bool Sweep::place(std::int64_t ceiling, SweepRule rule, int threshold, Stop& stop) {
  const int floor_item = sections_.items, ceiling_item = floor_item + 1;
  ceiling_ = ceiling;
  offsets_.assign(sections_.items, 0);
  gaps_.assign(1, {0, ceiling, floor_item, ceiling_item});
  above_[floor_item] = ceiling_item;
  below_[ceiling_item] = floor_item;
  for (const std::int32_t event : events_) {
    if (event < 0) {
      death(~event);
    } else if (stop() || !birth(event, rule, threshold)) {
      return false;
    }
  }
  return true;
}

bool Sweep::birth(int item, SweepRule rule, int threshold) {
  const std::int64_t size = sections_.size[item];
  bool at_top = false;
  const int choice = pick(size, rule, dies_[item] - born_[item] > threshold, dies_[item], at_top);
  if (choice < 0) return false;
  Gap& gap = gaps_[choice];
  below_[item] = gap.below;
  above_[item] = gap.above;
  above_[gap.below] = item;
  below_[gap.above] = item;
  offsets_[item] = at_top ? gap.end - size : gap.begin;
  if (gap.end - gap.begin == size) {
    gaps_.erase(gaps_.begin() + choice);
  } else if (at_top) {
    gap.end -= size;
    gap.above = item;
  } else {
    gap.begin += size;
    gap.below = item;
  }
  return true;
}

void Sweep::death(int item) {
  const int below = below_[item], above = above_[item];
  above_[below] = above;
  below_[above] = below;
  const std::int64_t begin = below == sections_.items ? 0 : offsets_[below] + sections_.size[below];
  const std::int64_t end = above == sections_.items + 1 ? ceiling_ : offsets_[above];
  const Gap gap{begin, end, below, above};
  auto place = std::lower_bound(gaps_.begin(), gaps_.end(), begin, [](const Gap& g, std::int64_t b) { return g.begin < b; });
  auto rest = place;  // the gaps that the new one takes in: below the item, above it
  while (rest != gaps_.end() && rest->begin < end) ++rest;
  if (place == rest) {
    gaps_.insert(place, gap);
  } else {
    *place = gap;
    gaps_.erase(place + 1, rest);
  }
}

int Sweep::pick(std::int64_t size, SweepRule rule, bool long_lived, int death, bool& at_top) const {
  if (rule == SweepRule::kFirstFit) return first_fit(size);
  if (rule == SweepRule::kBestFit) return best_fit(size);
  at_top = !long_lived;
  if (at_top) return first_fit_from_above(size);
  return rule == SweepRule::kTwoEnded ? first_fit(size) : affine(size, death, at_top);
}

int Sweep::first_fit(std::int64_t size) const {
  for (int g = 0; g < static_cast<int>(gaps_.size()); ++g)
    if (gaps_[g].end - gaps_[g].begin >= size) return g;
  return -1;
}

int Sweep::first_fit_from_above(std::int64_t size) const {
  int g = static_cast<int>(gaps_.size()) - 1;
  while (g >= 0 && gaps_[g].end - gaps_[g].begin < size) --g;
  return g;
}

int Sweep::best_fit(std::int64_t size) const {
  int best = -1;
  std::int64_t least = kNoCeiling;
  for (int g = 0; g < static_cast<int>(gaps_.size()); ++g) {
    const std::int64_t room = gaps_[g].end - gaps_[g].begin;
    if (room >= size && (room < least || best < 0)) {
      least = room;
      best = g;
    }
  }
  return best;
}

int Sweep::affine(std::int64_t size, int death, bool& at_top) const {
  int best = -1;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int g = 0; g < static_cast<int>(gaps_.size()); ++g) {
    const Gap& gap = gaps_[g];
    if (gap.end - gap.begin < size) continue;
    const std::int64_t to_floor = gap.below == sections_.items ? 0 : std::abs(std::int64_t{dies_[gap.below]} - death);
    const std::int64_t to_above = std::abs(std::int64_t{dies_[gap.above]} - death);
    // Four times the distance, which an exact fit halves: it leaves no gap, and has a neighbour on either side.
    if (gap.end - gap.begin == size) {
      if (to_floor + to_above < least) {
        least = to_floor + to_above;
        best = g;
        at_top = false;
      }
      continue;
    }
    if (4 * to_floor < least) {
      least = 4 * to_floor;
      best = g;
      at_top = false;
    }
    if (4 * to_above < least) {
      least = 4 * to_above;
      best = g;
      at_top = true;
    }
  }
  return best;
}

void register_sweep(nb::module_& m) {
  nb::enum_<SweepRule>(m, "SweepRule")
      .value("FIRST_FIT", SweepRule::kFirstFit)
      .value("BEST_FIT", SweepRule::kBestFit)
      .value("TWO_ENDED", SweepRule::kTwoEnded)
      .value("AFFINE", SweepRule::kAffine);
  nb::class_<Sweep>(m, "Sweep")
      .def(nb::init<const Sections&, bool>(), nb::arg("sections"), nb::arg("backward"), nb::keep_alive<1, 2>())
      .def(
          "place",
          [](Sweep& self, std::int64_t ceiling, SweepRule rule, int threshold, double seconds) {
            Stop stop(seconds);
            bool fits;
            {
              nb::gil_scoped_release released;
              fits = self.place(ceiling, rule, threshold, stop);
            }
            stop.rethrow();
            return std::make_pair(fits, to_numpy(fits ? self.offsets() : std::vector<std::int64_t>()));
          },
          nb::arg("ceiling"), nb::arg("rule"), nb::arg("threshold"), nb::arg("seconds"));
}

}  // namespace xla_stalloc
