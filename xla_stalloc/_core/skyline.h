// What a search that stacks items from the bottom knows at each section: how high it is filled, and what is left to
// come. Floors rise as far as the items left allow, and everything can be taken back in reverse order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sections.h"

namespace xla_stalloc {

class Skyline {
 public:
  struct Mark {
    std::size_t floors, leasts;
  };
  // The items left in a section, in no particular order.
  struct Items {
    const int *first, *last;
    const int* begin() const { return first; }
    const int* end() const { return last; }
  };

  explicit Skyline(const Sections& sections);

  void reset(std::int64_t capacity);

  std::int64_t capacity() const { return capacity_; }
  bool placed(int item) const { return placed_[item]; }
  std::int64_t floor(int section) const { return floor_[section]; }
  std::int64_t left(int section) const { return left_[section]; }  // bytes still to be placed
  std::int64_t slack(int section) const { return capacity_ - floor_[section] - left_[section]; }
  std::int64_t least(int item) const { return least_[item]; }  // no offset of the item can be lower
  bool separated(int section) const { return crossing_[section] == 0; }  // nothing left spans it and the next
  Items unplaced(int section) const {
    const int* begin = live_.data() + live_begin_[section];
    return {begin, begin + live_count_[section]};
  }

  Mark mark() const { return {floors_.size(), leasts_.size()}; }
  // These return false, after the same changes, when something cannot fit any more; see `culprit`.
  bool place(int item, std::int64_t offset);
  bool raise(int begin, int end, std::int64_t floor);
  // To be called after the floors in [begin, end) have been raised.
  bool propagate(int begin, int end);
  void undo(Mark mark);    // of everything but the placement itself
  void unplace(int item);  // the item placed last
  bool split() const { return split_; }  // the item placed last was a link between others, or the last of a section
  int culprit() const { return culprit_; }

  std::int64_t work() const { return work_; }  // grows with the time spent: the same on every host

 private:
  bool set_floor(int section, std::int64_t floor);
  void touch(int begin, int end);
  bool settle(int section);

  const Sections& sections_;
  std::int64_t capacity_ = 0, work_ = 0;
  int culprit_ = 0;
  bool split_ = false;
  std::vector<char> placed_;
  std::vector<std::int64_t> floor_, left_, least_;
  std::vector<int> crossing_;
  // Of each section, the items left come first; a removed one is swapped behind them, where undoing finds it.
  std::vector<int> live_, live_begin_, live_count_;
  std::vector<int> place_in_live_, place_begin_;  // of each item, in each of its sections
  std::vector<std::pair<int, std::int64_t>> floors_, leasts_;  // what was overwritten
  std::vector<std::uint64_t> touched_;
  int touched_begin_ = 0, touched_end_ = 0;
};

}  // namespace xla_stalloc
