#include "skyline.h"

#include <algorithm>
#include <limits>

namespace xla_stalloc {

Skyline::Skyline(const Sections& sections)
    : sections_(sections), live_begin_(sections.count), live_count_(sections.count), place_begin_(sections.items),
      touched_((sections.count + 63) / 64, 0) {
  for (int item = 0; item < sections.items; ++item) {
    for (int s = sections.first[item]; s < sections.last[item]; ++s) ++live_count_[s];
  }
  int entries = 0;
  for (int s = 0; s < sections.count; ++s) {
    live_begin_[s] = entries;
    entries += live_count_[s];
    live_count_[s] = 0;
  }
  live_.resize(entries);
  place_in_live_.reserve(entries);
  for (int item = 0; item < sections.items; ++item) {
    place_begin_[item] = static_cast<int>(place_in_live_.size()) - sections.first[item];
    for (int s = sections.first[item]; s < sections.last[item]; ++s) {
      place_in_live_.push_back(live_count_[s]);
      live_[live_begin_[s] + live_count_[s]++] = item;
    }
  }
}

void Skyline::reset(std::int64_t capacity) {
  capacity_ = capacity;
  floors_.clear();
  leasts_.clear();
  placed_.assign(sections_.items, 0);
  least_.assign(sections_.items, 0);
  floor_.assign(sections_.count, 0);
  left_ = sections_.load;
  crossing_.assign(sections_.count, 0);
  std::fill(live_count_.begin(), live_count_.end(), 0);
  for (int item = 0; item < sections_.items; ++item) {  // the same order after every reset
    for (int s = sections_.first[item]; s < sections_.last[item]; ++s) {
      place_in_live_[place_begin_[item] + s] = live_count_[s];
      live_[live_begin_[s] + live_count_[s]++] = item;
      crossing_[s] += s + 1 < sections_.last[item];
    }
  }
}

bool Skyline::set_floor(int section, std::int64_t floor) {
  floors_.emplace_back(section, floor_[section]);
  floor_[section] = floor;
  if (floor + left_[section] <= capacity_) return true;
  culprit_ = section;
  return false;
}

bool Skyline::place(int item, std::int64_t offset) {
  const std::int64_t size = sections_.size[item];
  const int begin = sections_.first[item], end = sections_.last[item];
  bool fits = true;
  placed_[item] = 1;
  split_ = false;
  for (int s = begin; s < end; ++s) {
    left_[s] -= size;
    fits &= set_floor(s, offset + size);
    int* live = live_.data() + live_begin_[s];
    const int behind = --live_count_[s], moved = live[behind];
    int& place = place_in_live_[place_begin_[item] + s];
    live[place] = moved;
    live[behind] = item;
    place_in_live_[place_begin_[moved] + s] = place;
    place = behind;
    split_ |= behind == 0;
    if (s + 1 < end) split_ |= --crossing_[s] == 0;
  }
  work_ += end - begin;
  return fits;
}

void Skyline::unplace(int item) {
  const int begin = sections_.first[item], end = sections_.last[item];
  placed_[item] = 0;
  for (int s = begin; s < end; ++s) {
    left_[s] += sections_.size[item];
    ++live_count_[s];
    crossing_[s] += s + 1 < end;
  }
}

bool Skyline::raise(int begin, int end, std::int64_t floor) {
  bool fits = true;
  for (int s = begin; s < end; ++s) fits &= set_floor(s, floor);
  return fits;
}

void Skyline::touch(int begin, int end) {
  for (int s = begin; s < end;) {
    const int word = s / 64, stop = std::min(end, (word + 1) * 64);
    const std::uint64_t width = stop - s == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (stop - s)) - 1;
    touched_[word] |= width << (s % 64);
    s = stop;
  }
  touched_begin_ = std::min(touched_begin_, begin);
  touched_end_ = std::max(touched_end_, end);
}

bool Skyline::propagate(int begin, int end) {
  touched_begin_ = begin;
  touched_end_ = end;
  touch(begin, end);
  bool fits = true;
  for (int s = begin; s < end && fits; ++s) {
    const std::int64_t floor = floor_[s];
    work_ += live_count_[s];
    for (const int item : unplaced(s)) {
      if (least_[item] >= floor) continue;
      leasts_.emplace_back(item, least_[item]);
      least_[item] = floor;
      touch(sections_.first[item], sections_.last[item]);
      if (floor + sections_.size[item] > capacity_) {
        culprit_ = s;
        fits = false;
        break;
      }
    }
  }
  for (int word = touched_begin_ / 64; word <= (touched_end_ - 1) / 64; ++word) {
    std::uint64_t bits = touched_[word];
    touched_[word] = 0;
    for (; fits && bits; bits &= bits - 1) fits = settle(word * 64 + __builtin_ctzll(bits));
  }
  return fits;
}

// A floor below every item that is left is waste already.
bool Skyline::settle(int section) {
  const std::int64_t floor = floor_[section];
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  ++work_;
  for (const int item : unplaced(section)) {
    ++work_;
    lowest = std::min(lowest, least_[item]);
    if (lowest <= floor) return true;
  }
  return live_count_[section] == 0 || set_floor(section, lowest);
}

void Skyline::undo(Mark mark) {
  for (; floors_.size() > mark.floors; floors_.pop_back()) floor_[floors_.back().first] = floors_.back().second;
  for (; leasts_.size() > mark.leasts; leasts_.pop_back()) least_[leasts_.back().first] = leasts_.back().second;
}

}  // namespace xla_stalloc
