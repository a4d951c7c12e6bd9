// Exact packing into a capacity: depth-first search over canonical placements, as in MiniMalloc (Moffitt 2023).
//
// Items are placed by non-decreasing offset, and at equal offsets in the order of their ranks, each as low as it can
// lie: every packing that gravity leaves in place is met exactly once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "random.h"
#include "restart.h"
#include "sections.h"
#include "skyline.h"
#include "stop.h"

namespace xla_stalloc {

class CanonicalSearch {
 public:
  CanonicalSearch(const Sections& sections, std::uint64_t seed);

  // The next attempt: another static order of the items, or the last ones again with more nodes.
  Verdict attempt(std::int64_t capacity, Stop& stop);

  std::int64_t work() const { return skyline_.work() + scanned_; }  // grows with the time spent, equal on every host
  const std::vector<std::int64_t>& offsets() const { return offsets_; }  // after kFits

 private:
  // What comes first at an offset, by what it is compared next on a tie.
  enum class Order { kDuration, kCrowdingThenArea, kCrowdingThenDuration };
  using Candidate = std::pair<std::int64_t, int>;  // offset, item

  Verdict solve(const std::vector<int>& items, int begin, int end);
  Verdict split(const std::vector<int>& items, int begin, int end);
  Verdict search(const std::vector<int>& items, int begin, int end, Candidate previous);
  Verdict put(const std::vector<int>& items, int begin, int end, Candidate candidate);
  bool fits_above(int begin, int end, std::int64_t offset) const;
  bool under_something(int item) const;
  bool before(const Candidate& a, const Candidate& b) const;

  const Sections& sections_;
  Skyline skyline_;
  Random random_;
  std::vector<std::int64_t> offsets_;
  std::vector<int> rank_;
  std::vector<double> duration_jitter_, area_jitter_, crowding_jitter_;
  Order order_ = Order::kDuration;
  std::int64_t attempts_ = 0, nodes_ = 0, limit_ = 0, scanned_ = 0;
  Stop* stop_ = nullptr;
};

}  // namespace xla_stalloc
