#include "conflicts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include <nanobind/stl/pair.h>

#include "arrays.h"

namespace xla_stalloc {

namespace {

// Buffers of one owner that start at one offset.
struct Slot {
  std::int64_t owner, end;  // the end of the longest one
  std::vector<std::int32_t> buffers;
};

class Checker {
 public:
  explicit Checker(const PlacedBuffers& buffers) : b_(buffers) {}

  Conflict run() {
    const int count = static_cast<int>(b_.lower.size());
    std::vector<std::int32_t> births, deaths;
    for (int i = 0; i < count; ++i)
      if (b_.end[i] > b_.begin[i]) births.push_back(i);
    deaths = births;
    std::sort(births.begin(), births.end(), [&](int x, int y) { return b_.lower[x] < b_.lower[y]; });
    std::sort(deaths.begin(), deaths.end(), [&](int x, int y) { return b_.upper[x] < b_.upper[y]; });
    std::size_t next_death = 0;
    for (std::size_t birth = 0; birth < births.size();) {
      const std::int64_t now = b_.lower[births[birth]];
      for (; b_.upper[deaths[next_death]] < now; ++next_death) remove(deaths[next_death]);
      std::size_t last = birth;
      while (last < births.size() && b_.lower[births[last]] == now) ++last;
      if (b_.same_slice_when_touching) {
        for (std::size_t k = birth; k < last; ++k) {
          const int other = disturbs(births[k]);
          if (other >= 0 && !same_slice(births[k], other)) return {other, births[k]};
        }
      }
      for (; next_death < deaths.size() && b_.upper[deaths[next_death]] == now; ++next_death)
        remove(deaths[next_death]);
      for (; birth < last; ++birth) {
        const int other = disturbs(births[birth]);
        if (other >= 0) return {other, births[birth]};
        add(births[birth]);
      }
    }
    return {-1, -1};
  }

 private:
  // A live buffer of another owner in the newcomer's bytes, -1 if there is none. Slots are disjoint.
  int disturbs(int buffer) const {
    const auto above = live_.upper_bound(b_.begin[buffer]);
    if (above != live_.begin()) {
      const Slot& below = std::prev(above)->second;
      if (below.end > b_.begin[buffer] && below.owner != b_.owner[buffer]) return longest(below);
    }
    if (above != live_.end() && above->first < b_.end[buffer] && above->second.owner != b_.owner[buffer])
      return above->second.buffers.front();
    return -1;
  }

  int longest(const Slot& slot) const {
    return *std::max_element(slot.buffers.begin(), slot.buffers.end(),
                             [&](int x, int y) { return b_.end[x] < b_.end[y]; });
  }

  bool same_slice(int buffer, int other) const {
    return b_.begin[buffer] == b_.begin[other] && b_.end[buffer] == b_.end[other];
  }

  void add(int buffer) {
    Slot& slot = live_.try_emplace(b_.begin[buffer], Slot{b_.owner[buffer], 0, {}}).first->second;
    slot.end = std::max(slot.end, b_.end[buffer]);
    slot.buffers.push_back(buffer);
  }

  void remove(int buffer) {
    const auto slot = live_.find(b_.begin[buffer]);
    std::vector<std::int32_t>& buffers = slot->second.buffers;
    buffers.erase(std::find(buffers.begin(), buffers.end(), buffer));
    if (buffers.empty()) {
      live_.erase(slot);
    } else {
      slot->second.end = b_.end[longest(slot->second)];
    }
  }

  const PlacedBuffers& b_;
  std::map<std::int64_t, Slot> live_;  // by the first byte
};

}  // namespace

Conflict first_conflict(const PlacedBuffers& buffers) { return Checker(buffers).run(); }

void register_conflicts(nb::module_& m) {
  m.def(
      "first_conflict",
      [](const Input<std::int64_t>& lower, const Input<std::int64_t>& upper, const Input<std::int64_t>& begin,
         const Input<std::int64_t>& end, const Input<std::int64_t>& owner, bool same_slice_when_touching) {
        const nb::gil_scoped_release released;
        return first_conflict({to_vector<std::int64_t>(lower), to_vector<std::int64_t>(upper),
                               to_vector<std::int64_t>(begin), to_vector<std::int64_t>(end),
                               to_vector<std::int64_t>(owner), same_slice_when_touching});
      },
      nb::arg("lower"), nb::arg("upper"), nb::arg("begin"), nb::arg("end"), nb::arg("owner"),
      nb::arg("same_slice_when_touching"));
}

}  // namespace xla_stalloc
