#include "canonical_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace xla_stalloc {

CanonicalSearch::CanonicalSearch(const Sections& sections, std::uint64_t seed)
    : sections_(sections), skyline_(sections), random_(seed), offsets_(sections.items, 0), rank_(sections.items, 0),
      duration_jitter_(sections.items, 1), area_jitter_(sections.items, 1), crowding_jitter_(sections.items, 1) {}

Verdict CanonicalSearch::attempt(std::int64_t capacity, Stop& stop) {
  static constexpr Order kOrders[] = {Order::kDuration, Order::kCrowdingThenArea, Order::kCrowdingThenDuration};
  const std::int64_t round = attempts_ / 3;
  order_ = kOrders[attempts_++ % 3];
  const double noise = round % 2 ? 0.2 : 0;
  for (int item = 0; item < sections_.items; ++item) {
    duration_jitter_[item] = jitter(random_, noise);
    area_jitter_[item] = jitter(random_, noise);
    crowding_jitter_[item] = jitter(random_, 0.3 * noise);
  }
  limit_ = 2 * sections_.items;
  limit_ <<= std::min<std::int64_t>(round / 2, 30);
  nodes_ = 0;
  stop_ = &stop;
  skyline_.reset(capacity);
  std::vector<int> items(sections_.items);
  std::iota(items.begin(), items.end(), 0);
  return split(items, 0, sections_.count);
}

// Stretches that no item left joins are solved one by one.
Verdict CanonicalSearch::split(const std::vector<int>& items, int begin, int end) {
  for (int first = begin, s = begin; s < end; ++s) {
    if (s + 1 < end && !skyline_.separated(s)) continue;
    std::vector<int> inside;
    for (const int item : items) {
      if (!skyline_.placed(item) && first <= sections_.first[item] && sections_.last[item] <= s + 1)
        inside.push_back(item);
    }
    scanned_ += static_cast<std::int64_t>(items.size());
    const Verdict verdict = inside.empty() ? Verdict::kFits : solve(inside, first, s + 1);
    if (verdict != Verdict::kFits) return verdict;
    first = s + 1;
  }
  return Verdict::kFits;
}

// Ranks the items anew, by what is left beside them.
Verdict CanonicalSearch::solve(const std::vector<int>& items, int begin, int end) {
  using Key = std::tuple<double, double, double, int>;
  std::vector<Key> keys;
  std::vector<int> outer;
  for (const int item : items) {
    std::int64_t left = 0;
    for (int s = sections_.first[item]; s < sections_.last[item]; ++s) left = std::max(left, skyline_.left(s));
    const double span = static_cast<double>(sections_.duration[item]);
    const double duration = -span * duration_jitter_[item];
    const double area = -span * static_cast<double>(sections_.size[item]) * area_jitter_[item];
    const double crowding = -static_cast<double>(left) * crowding_jitter_[item];
    keys.push_back(order_ == Order::kDuration           ? Key{duration, area, crowding, item}
                   : order_ == Order::kCrowdingThenArea ? Key{crowding, area, duration, item}
                                                        : Key{crowding, duration, area, item});
    outer.push_back(rank_[item]);
    scanned_ += sections_.last[item] - sections_.first[item];
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t rank = 0; rank < keys.size(); ++rank) rank_[std::get<3>(keys[rank])] = static_cast<int>(rank);
  const Verdict verdict = search(items, begin, end, {-1, items.front()});
  for (std::size_t i = 0; i < items.size(); ++i) rank_[items[i]] = outer[i];
  return verdict;
}

bool CanonicalSearch::before(const Candidate& a, const Candidate& b) const {
  return a.first != b.first ? a.first < b.first : rank_[a.second] < rank_[b.second];
}

Verdict CanonicalSearch::search(const std::vector<int>& items, int begin, int end, Candidate previous) {
  if (++nodes_ > limit_ || (*stop_)()) return Verdict::kUnknown;
  scanned_ += static_cast<std::int64_t>(items.size());
  std::vector<int> left;
  left.reserve(items.size());
  std::int64_t lowest_top = std::numeric_limits<std::int64_t>::max();
  for (const int item : items) {
    if (skyline_.placed(item)) continue;
    left.push_back(item);
    lowest_top = std::min(lowest_top, skyline_.least(item) + sections_.size[item]);
  }
  if (left.empty()) return Verdict::kFits;
  // Of items that would leave room for another one below, that other one has to come first.
  std::vector<Candidate> candidates;
  for (const int item : left) {
    const Candidate candidate{skyline_.least(item), item};
    if (candidate.first < lowest_top && before(previous, candidate)) candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) { return before(a, b); });
  for (const Candidate& candidate : candidates) {
    const Verdict verdict = put(left, begin, end, candidate);
    if (verdict != Verdict::kInfeasible) return verdict;
    if (!under_something(candidate.second)) break;  // it is in nobody's way there, so others are to blame
  }
  return Verdict::kInfeasible;
}

Verdict CanonicalSearch::put(const std::vector<int>& items, int begin, int end, Candidate candidate) {
  const auto [offset, item] = candidate;
  const Skyline::Mark mark = skyline_.mark();
  bool fits = skyline_.place(item, offset);
  const bool split_here = skyline_.split();
  fits = fits && skyline_.propagate(sections_.first[item], sections_.last[item]) && fits_above(begin, end, offset);
  Verdict verdict = Verdict::kInfeasible;
  if (fits) verdict = split_here ? split(items, begin, end) : search(items, begin, end, candidate);
  skyline_.undo(mark);
  skyline_.unplace(item);
  if (verdict == Verdict::kFits) offsets_[item] = offset;
  return verdict;
}

// Whether what is left can lie at this offset or above: nothing comes below it any more.
bool CanonicalSearch::fits_above(int begin, int end, std::int64_t offset) const {
  for (int s = begin; s < end; ++s) {
    if (std::max(offset, skyline_.floor(s)) + skyline_.left(s) > skyline_.capacity()) return false;
  }
  return true;
}

// Whether an item that is left lives at a time of this one.
bool CanonicalSearch::under_something(int item) const {
  for (int s = sections_.first[item]; s < sections_.last[item]; ++s) {
    for (const int other : skyline_.unplaced(s)) {
      if (other != item) return true;
    }
  }
  return false;
}

}  // namespace xla_stalloc
