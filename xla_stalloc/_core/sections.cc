#include "sections.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace xla_stalloc {

namespace {

std::vector<int> sorted_by(const std::vector<std::int64_t>& keys) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace

Sections::Sections(const std::vector<std::int64_t>& lower, const std::vector<std::int64_t>& upper,
                   std::vector<std::int64_t> sizes)
    : items(static_cast<int>(sizes.size())), first(sizes.size()), last(sizes.size()), size(std::move(sizes)),
      duration(size.size()) {
  const std::vector<int> births = sorted_by(lower), deaths = sorted_by(upper);
  bool born = false;  // since the section began
  for (std::size_t birth = 0, death = 0; death < deaths.size();) {
    if (birth < births.size() && lower[births[birth]] < upper[deaths[death]]) {
      first[births[birth++]] = count;
      born = true;
    } else {
      count += born;
      born = false;
      last[deaths[death++]] = count;
    }
  }
  load.assign(count, 0);
  for (int item = 0; item < items; ++item) {
    duration[item] = upper[item] - lower[item];
    for (int s = first[item]; s < last[item]; ++s) load[s] += size[item];
  }
}

}  // namespace xla_stalloc
