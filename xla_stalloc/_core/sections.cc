#include "sections.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "arrays.h"

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
  load.assign(count + 1, 0);
  for (int item = 0; item < items; ++item) {
    duration[item] = upper[item] - lower[item];
    load[first[item]] += size[item];
    load[last[item]] -= size[item];
  }
  load.pop_back();  // nothing is alive after the last section
  std::partial_sum(load.begin(), load.end(), load.begin());
}

void register_sections(nb::module_& m) {
  nb::class_<Sections>(m, "Sections")
      .def(
          "__init__",
          [](Sections* self, const Input<std::int64_t>& lower, const Input<std::int64_t>& upper,
             const Input<std::int64_t>& sizes) {
            new (self) Sections(to_vector<std::int64_t>(lower), to_vector<std::int64_t>(upper),
                                to_vector<std::int64_t>(sizes));
          },
          nb::arg("lower"), nb::arg("upper"), nb::arg("sizes"))
      .def_prop_ro("first", [](const Sections& self) { return to_numpy(self.first); }, nb::rv_policy::move)
      .def_prop_ro("last", [](const Sections& self) { return to_numpy(self.last); }, nb::rv_policy::move)
      .def_prop_ro("load", [](const Sections& self) { return to_numpy(self.load); }, nb::rv_policy::move);
}

}  // namespace xla_stalloc
