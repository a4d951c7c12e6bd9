// Exact packing into a capacity, for instances with next to no room to spare: fill the skyline one niche at a time.
//
// A niche is a stretch of the skyline between two higher walls. What lies lowest in it rests on its floor, or nothing
// does and the floor is waste up to the lower wall: branching on that one niche is complete. Putting an item on a floor
// takes no slack (capacity less floor less what is left to come), only waste does, so a branch dies early.
#pragma once

#include <cstdint>
#include <vector>

#include "random.h"
#include "restart.h"
#include "sections.h"
#include "skyline.h"
#include "stop.h"

namespace xla_stalloc {

class NicheSearch {
 public:
  NicheSearch(const Sections& sections, std::uint64_t seed);

  // The next attempt, with other preferences than the last one; what failed most in those before is tried first.
  Verdict attempt(std::int64_t capacity, Stop& stop);

  std::int64_t work() const { return skyline_.work() + scanned_; }  // grows with the time spent, equal on every host
  const std::vector<std::int64_t>& offsets() const { return offsets_; }  // after kFits

 private:
  // Which niche to branch on: the one with least slack for its blame, with least slack, with fewest items for its blame.
  enum class Pick { kSlackPerBlame, kSlack, kItemsPerBlame };
  // Which item to put there first.
  enum class Prefer { kLong, kLarge, kBig, kLongWhereTight };
  struct Niche {
    int begin, end;  // sections
    std::int64_t floor, left_wall, right_wall;
  };
  struct Candidate {
    double preference;
    int item;
  };

  Verdict solve(int begin, int end);
  Verdict search(int begin, int end);
  Verdict put(const Niche& niche, int item, int begin, int end);
  Verdict waste(const Niche& niche, int begin, int end);
  bool find_niche(int begin, int end, Niche& niche);
  bool gather(const Niche& niche);
  bool could_drop(const Niche& niche, int end, std::int64_t level) const;
  bool twin_comes_first(int section, std::size_t position) const;
  double preference(int item) const;
  double blame(int begin, int end) const;
  std::int64_t wall(int section) const;
  void blame_culprit() { blame_[skyline_.culprit()] += 1; }

  const Sections& sections_;
  Skyline skyline_;
  Random random_;
  std::vector<std::vector<int>> starting_;  // of each section, the items born there, by end and size
  std::vector<std::int64_t> offsets_;
  std::vector<double> blame_, jitter_;      // of each section: failures there; of each item
  std::vector<Candidate> candidates_;       // of all the nodes from the root to here
  Pick pick_ = Pick::kSlack;
  Prefer prefer_ = Prefer::kLong;
  std::int64_t attempts_ = 0, nodes_ = 0, limit_ = 0, scanned_ = 0;
  Stop* stop_ = nullptr;
};

}  // namespace xla_stalloc
