#include "niche_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace xla_stalloc {

namespace {

constexpr std::int64_t kNoFloor = std::numeric_limits<std::int64_t>::max();  // nothing more is to come there
constexpr double kSecondChoice = 0.5;  // for an item that leaves waste beside it

}  // namespace

NicheSearch::NicheSearch(const Sections& sections, std::uint64_t seed)
    : sections_(sections), skyline_(sections), random_(seed), starting_(sections.count), offsets_(sections.items, 0),
      blame_(sections.count, 0), jitter_(sections.items, 1) {
  for (int item = 0; item < sections.items; ++item) starting_[sections.first[item]].push_back(item);
  for (std::vector<int>& items : starting_) {
    std::sort(items.begin(), items.end(), [&](int a, int b) {
      return std::make_tuple(sections.last[a], sections.size[a], a) <
             std::make_tuple(sections.last[b], sections.size[b], b);
    });
  }
}

Verdict NicheSearch::attempt(std::int64_t capacity, Stop& stop) {
  static constexpr Prefer kPreferences[] = {Prefer::kLong, Prefer::kLarge, Prefer::kBig, Prefer::kLongWhereTight};
  static constexpr double kNoises[] = {0, 0.2, 1.0};
  static constexpr Pick kPicks[] = {Pick::kSlackPerBlame, Pick::kSlackPerBlame, Pick::kSlack, Pick::kItemsPerBlame};
  const std::int64_t round = attempts_ / 4;
  prefer_ = kPreferences[attempts_ % 4];
  pick_ = kPicks[random_.below(4)];
  for (double& factor : jitter_) factor = jitter(random_, kNoises[round % 3]);
  if (++attempts_ % 16 == 0) {  // lessons fade
    for (double& blame : blame_) blame *= 0.7;
  }
  skyline_.reset(capacity);
  candidates_.clear();
  nodes_ = 0;
  limit_ = 2 * sections_.items * luby(round + 1);
  stop_ = &stop;
  return solve(0, sections_.count);
}

std::int64_t NicheSearch::wall(int section) const {
  return skyline_.left(section) == 0 ? kNoFloor : skyline_.floor(section);
}

// Stretches that no item left joins are solved one by one.
Verdict NicheSearch::solve(int begin, int end) {
  for (int s = begin; s < end; ++s) {
    if (skyline_.left(s) == 0) continue;
    const int first = s;
    while (s + 1 < end && !skyline_.separated(s)) ++s;
    const Verdict verdict = search(first, s + 1);
    if (verdict != Verdict::kFits) return verdict;
  }
  return Verdict::kFits;
}

Verdict NicheSearch::search(int begin, int end) {
  if (++nodes_ > limit_ || (*stop_)()) return Verdict::kUnknown;
  Niche niche;
  if (!find_niche(begin, end, niche)) return Verdict::kFits;  // nothing is left
  const std::size_t before = candidates_.size();
  Verdict verdict = Verdict::kInfeasible;
  if (gather(niche)) {
    std::sort(candidates_.begin() + before, candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.preference != b.preference ? a.preference > b.preference : a.item < b.item;
    });
    const std::size_t after = candidates_.size();
    for (std::size_t c = before; c < after && verdict == Verdict::kInfeasible; ++c) {
      verdict = put(niche, candidates_[c].item, begin, end);
    }
    if (verdict == Verdict::kInfeasible) verdict = waste(niche, begin, end);
  }
  candidates_.resize(before);
  return verdict;
}

bool NicheSearch::find_niche(int begin, int end, Niche& niche) {
  double least = std::numeric_limits<double>::infinity(), second_least = least;
  scanned_ += end - begin;
  std::int64_t left_wall = kNoFloor;
  for (int s = begin; s < end;) {
    const std::int64_t floor = wall(s);
    const int first = s;
    std::int64_t slack = kNoFloor;
    for (; s < end && wall(s) == floor; ++s) slack = std::min(slack, skyline_.slack(s));
    const std::int64_t right_wall = s < end ? wall(s) : kNoFloor;
    if (floor < left_wall && floor < right_wall) {
      double score = static_cast<double>(slack), second = static_cast<double>(floor);
      if (pick_ == Pick::kSlackPerBlame) {
        score = (score + static_cast<double>(skyline_.capacity()) / 64) / (1 + blame(first, s));
      } else if (pick_ == Pick::kItemsPerBlame) {
        int items = 0;
        for (int t = first; t < s; ++t) {
          for (const int item : starting_[t]) items += !skyline_.placed(item) && sections_.last[item] <= s;
        }
        second = score;
        score = items / (1 + blame(first, s));
      }
      if (score < least || (score == least && second < second_least)) {
        least = score;
        second_least = second;
        niche = {first, s, floor, left_wall, right_wall};
      }
    }
    left_wall = floor;
  }
  return least < std::numeric_limits<double>::infinity();
}

double NicheSearch::blame(int begin, int end) const {
  return *std::max_element(blame_.begin() + begin, blame_.begin() + end);
}

// The items that may be the leftmost on the floor. Left of it is waste, as high as the lower of it and the wall: only
// as much as the sections there can spare, and none that an item left could lie in. False if an item fits nowhere.
bool NicheSearch::gather(const Niche& niche) {
  std::int64_t spare = kNoFloor;
  for (int s = niche.begin; s < niche.end; ++s) {
    const std::vector<int>& starting = starting_[s];
    scanned_ += static_cast<std::int64_t>(starting.size());
    for (std::size_t position = 0; position < starting.size(); ++position) {
      const int item = starting[position];
      if (skyline_.placed(item)) continue;
      if (sections_.last[item] > niche.end) break;  // and so do those after it
      if (twin_comes_first(s, position)) continue;
      const std::int64_t top = niche.floor + sections_.size[item];
      if (top > skyline_.capacity()) return false;
      if (s > niche.begin) {
        const std::int64_t level = std::min(niche.left_wall, top);
        if (level - niche.floor > spare || could_drop(niche, s, level)) continue;
      }
      candidates_.push_back({preference(item) * (s == niche.begin ? 1 : kSecondChoice), item});
    }
    spare = std::min(spare, skyline_.slack(s));
    if (spare == 0) break;
  }
  return true;
}

// Of items that are the same, the first one left goes first.
bool NicheSearch::twin_comes_first(int section, std::size_t position) const {
  if (position == 0) return false;
  const int item = starting_[section][position], before = starting_[section][position - 1];
  return !skyline_.placed(before) && sections_.last[before] == sections_.last[item] &&
         sections_.size[before] == sections_.size[item];
}

// Whether an item left would fit between the niche's begin and `end`, below the level.
bool NicheSearch::could_drop(const Niche& niche, int end, std::int64_t level) const {
  for (int s = niche.begin; s < end; ++s) {
    for (const int item : starting_[s]) {
      if (sections_.last[item] > end) break;
      if (!skyline_.placed(item) && niche.floor + sections_.size[item] <= level) return true;
    }
  }
  return false;
}

double NicheSearch::preference(int item) const {
  const auto duration = static_cast<double>(sections_.duration[item]), size = static_cast<double>(sections_.size[item]);
  switch (prefer_) {
    case Prefer::kLong:
      return jitter_[item] * duration;
    case Prefer::kLarge:
      return jitter_[item] * duration * size;
    case Prefer::kBig:
      return jitter_[item] * size;
    default:
      break;
  }
  std::int64_t slack = kNoFloor;
  for (int s = sections_.first[item]; s < sections_.last[item]; ++s) slack = std::min(slack, skyline_.slack(s));
  const auto capacity = static_cast<double>(skyline_.capacity());
  const double tight = 1 - static_cast<double>(slack) / capacity;
  const double fourth = tight * tight * tight * tight;
  return jitter_[item] * duration * fourth * fourth;
}

Verdict NicheSearch::put(const Niche& niche, int item, int begin, int end) {
  const Skyline::Mark mark = skyline_.mark();
  const int first = sections_.first[item];
  const std::int64_t top = niche.floor + sections_.size[item];
  bool fits = skyline_.place(item, niche.floor);
  const bool split = skyline_.split();
  fits = fits && skyline_.raise(niche.begin, first, std::min(niche.left_wall, top));
  fits = fits && skyline_.propagate(niche.begin, sections_.last[item]);
  Verdict verdict = Verdict::kInfeasible;
  if (!fits) {
    blame_culprit();
  } else {
    verdict = split ? solve(begin, end) : search(begin, end);
  }
  skyline_.undo(mark);
  skyline_.unplace(item);
  if (verdict == Verdict::kFits) offsets_[item] = niche.floor;
  return verdict;
}

Verdict NicheSearch::waste(const Niche& niche, int begin, int end) {
  const std::int64_t level = std::min(niche.left_wall, niche.right_wall);
  if (level == kNoFloor) {
    blame_[niche.begin] += 1;
    return Verdict::kInfeasible;
  }
  if (could_drop(niche, niche.end, level)) return Verdict::kInfeasible;
  const Skyline::Mark mark = skyline_.mark();
  Verdict verdict = Verdict::kInfeasible;
  if (skyline_.raise(niche.begin, niche.end, level) && skyline_.propagate(niche.begin, niche.end)) {
    verdict = search(begin, end);
  } else {
    blame_culprit();
  }
  skyline_.undo(mark);
  return verdict;
}

}  // namespace xla_stalloc
