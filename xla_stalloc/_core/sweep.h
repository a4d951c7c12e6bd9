// Packing by a sweep over time, with every death known: what a run-time allocator would do if it could see ahead.
//
// Buffers of a training step come in two kinds: saved activations that live long, and scratch that is gone at once.
// Under a ceiling, long-lived ones go next to the neighbour that dies at about the same time, so that both leave one
// hole behind; short-lived ones come down from the ceiling. How low the ceiling can be is for the caller to find out.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <nanobind/nanobind.h>

#include "sections.h"
#include "stop.h"

namespace xla_stalloc {

enum class SweepRule {
  kFirstFit,  // the lowest gap
  kBestFit,   // the smallest gap
  kTwoEnded,  // first fit from below for long lives, from above for short ones
  kAffine,    // beside the neighbour with the closest death for long lives, first fit from above for short ones
};

class Sweep {
 public:
  static constexpr std::int64_t kNoCeiling = std::numeric_limits<std::int64_t>::max();

  // Forward in time, or backward.
  Sweep(const Sections& sections, bool backward);

  // Places everything; false as soon as an item fits nowhere under the ceiling, or once told to stop. A long life takes more sections than
  // the threshold.
  bool place(std::int64_t ceiling, SweepRule rule, int threshold, Stop& stop);

  const std::vector<std::int64_t>& offsets() const { return offsets_; }  // after `place` returned true

 private:
  // Free space between two live items, or between one and an end of the heap.
  struct Gap {
    std::int64_t begin, end;
    std::int32_t below, above;  // items; those beyond the ends are numbers `items` and `items + 1`
  };

  int pick(std::int64_t size, SweepRule rule, bool long_lived, int death, bool& at_top) const;
  int first_fit(std::int64_t size) const;
  int first_fit_from_above(std::int64_t size) const;
  int best_fit(std::int64_t size) const;
  int affine(std::int64_t size, int death, bool& at_top) const;
  bool birth(int item, SweepRule rule, int threshold);
  void death(int item);

  const Sections& sections_;
  std::vector<std::int32_t> events_;  // in the order of the sweep: an item at its birth, ~item at its death
  std::vector<std::int32_t> born_, dies_;  // sections of each item, in the direction of the sweep; of the ends as well
  std::vector<Gap> gaps_;  // ascending
  std::vector<std::int32_t> below_, above_;  // of each live item: its neighbours by address
  std::vector<std::int64_t> offsets_;
  std::int64_t ceiling_ = kNoCeiling;
};

void register_sweep(nanobind::module_& m);

}  // namespace xla_stalloc
