// First fit in a given order at any scale: every block at the lowest offset where it disturbs none that is there.
//
// Also the repair of an order (squeaky wheel, Joslin and Clements 1999): a block that does not fit under the target moves
// forward in the order, and packing goes on from there; what came before stays as it is.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "graph.h"
#include "occupancy.h"
#include "random.h"
#include "sections.h"
#include "stop.h"

namespace xla_stalloc {

// Blocks keep one offset over one or several pieces, each with its own life and size: the items of the sections.
struct Blocks {
  Csr pieces;
  std::vector<std::int64_t> alignments;  // of each block
};

class OrderedFit {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  OrderedFit(const Sections& sections, Blocks blocks);

  // A piece that lies where it lies; before anything is placed.
  void pin(int piece, std::int64_t offset) { pinned_.emplace_back(piece, offset); }

  // Each block of the order in turn, and the height. Gives up, with a height above the limit, once something ends there.
  std::int64_t place(const std::vector<std::int32_t>& order, std::int64_t limit, Stop& stop);

  // As much of the order as ends at or below the limit; what does not gets the offset -1.
  void fill(const std::vector<std::int32_t>& order, std::int64_t limit, Stop& stop);

  // Whether an order was found in which everything ends at or below the target, after so many placements at most.
  bool repair(std::vector<std::int32_t> order, std::int64_t target, std::int64_t placements, std::uint64_t seed,
              Stop& stop);

  const std::vector<std::int64_t>& offsets() const { return offsets_; }  // of each block, 0 if it was not in the order

 private:
  // One set of ranges that a piece of a block has to keep out of.
  struct Cursor {
    std::vector<Range>::const_iterator next, end;
    std::int64_t size;
  };
  struct Logged {
    RangeSet* set;
    std::size_t place;
    std::size_t ranges;
  };

  void reset();
  std::int64_t lowest(int block);
  std::int64_t top(int block, std::int64_t offset) const;
  void insert(int block, std::int64_t offset);
  void take_back();  // the latest insertion
  bool meets(int a, int b) const;

  const Sections& sections_;
  Blocks blocks_;
  std::vector<std::pair<int, std::int64_t>> pinned_;
  Occupancy occupancy_;
  std::vector<std::int64_t> offsets_;
  std::vector<Cursor> cursors_;
  bool logging_ = false;
  std::vector<Logged> log_;
  std::vector<Range> gone_;         // by the changes in the log
  std::vector<std::size_t> marks_;  // where in the log each insertion begins
};

void register_ordered_fit(nanobind::module_& m);

}  // namespace xla_stalloc
