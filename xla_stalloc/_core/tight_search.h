// Two exact searches that take turns: whatever one of them keeps failing at, the other may see at once.
#pragma once

#include <cstdint>
#include <vector>

#include <nanobind/nanobind.h>

#include "canonical_search.h"
#include "niche_search.h"
#include "restart.h"
#include "sections.h"
#include "stop.h"

namespace xla_stalloc {

class TightSearch {
 public:
  static constexpr int kMostCanonical = 4'000;  // items; beyond, the lists of that search take too much memory

  TightSearch(const std::vector<std::int64_t>& lower, const std::vector<std::int64_t>& upper,
              std::vector<std::int64_t> sizes, std::uint64_t seed);
  TightSearch(const TightSearch&) = delete;  // the searches refer to the sections

  // Attempts until one of them decides, until they have cost this much work, or until told to stop. A later call, with
  // another capacity if need be, goes on with what was learned.
  Verdict pack(std::int64_t capacity, std::int64_t work, Stop& stop);

  const std::vector<std::int64_t>& offsets() const { return *offsets_; }  // after Verdict::kFits
  std::int64_t work() const { return niche_.work() + canonical_.work(); }

 private:
  Sections sections_;
  NicheSearch niche_;
  CanonicalSearch canonical_;
  const std::vector<std::int64_t>* offsets_ = nullptr;
};

void register_tight_search(nanobind::module_& m);

}  // namespace xla_stalloc
