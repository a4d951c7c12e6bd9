// Time cut into sections: between two of them something dies and something is born, so each is a largest set of items
// that are alive together. What packing has to respect about time is in them, and there are fewer than items.
#pragma once

#include <cstdint>
#include <vector>

#include <nanobind/nanobind.h>

namespace xla_stalloc {

// Items of a packing problem. Sizes in whatever unit the capacity is in.
struct Sections {
  // Lifetimes are half-open, [lower, upper), and not empty; sizes are positive.
  Sections(const std::vector<std::int64_t>& lower, const std::vector<std::int64_t>& upper,
           std::vector<std::int64_t> sizes);

  int items = 0, count = 0;
  std::vector<int> first, last;              // of each item: its sections, [first, last)
  std::vector<std::int64_t> size, duration;  // of each item; duration in the unit of the lifetimes
  std::vector<std::int64_t> load;            // of each section: bytes alive
};

void register_sections(nanobind::module_& m);

}  // namespace xla_stalloc
