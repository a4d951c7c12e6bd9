#include "local_search.h"

#include <algorithm>
#include <utility>

#include "arrays.h"
#include "memory_profile.h"
#include "moves.h"
#include "random.h"

namespace xla_stalloc {

namespace {

constexpr int kMovesPerHotSpot = 32;
constexpr int kCycles = 3;            // of cooling
constexpr int kCoolingSteps = 8;      // halvings of the temperature in a cycle
constexpr int kAcceptedPerPeak = 16;  // improvements between two looks at the whole profile

class Search {
 public:
  Search(const Graph& graph, Order start, const LocalSearchOptions& options)
      : graph_(graph),
        options_(options),
        random_(options.seed),
        profile_(graph, std::move(start)),
        moves_(graph) {
    best_ = profile_.order();
    best_peak_ = profile_.peak();
    aim();
  }

  Order run() {
    for (std::int64_t move = 0; move < options_.moves && best_peak_ > options_.floor; ++move) {
      if (move % kMovesPerHotSpot == 0 || hot_spot_ < 0) find_hot_spot();
      if (propose()) try_move(temperature(move));
    }
    note_peak();
    return best_;
  }

 private:
  // Aims a little below the best peak: only what is above the ceiling counts.
  void aim() {
    ceiling_ = std::max(options_.floor, best_peak_ - std::max<std::int64_t>(1, best_peak_ / 64));
    excess_ = profile_.excess(0, graph_.nodes, ceiling_);
  }

  void note_peak() {
    const std::int64_t peak = profile_.peak();
    if (peak >= best_peak_) return;
    best_peak_ = peak;
    best_ = profile_.order();
    aim();
  }

  std::int64_t temperature(std::int64_t move) const {
    const std::int64_t cycle = std::max<std::int64_t>(1, options_.moves / kCycles);
    const std::int64_t step = (move % cycle) * kCoolingSteps / cycle;
    return (best_peak_ >> 8) >> step;
  }

  void find_hot_spot() {
    if (excess_ == 0) note_peak();
    hot_.clear();
    for (int k = 0; k < graph_.nodes; ++k)
      if (profile_.memory(k) > ceiling_) hot_.push_back(k);
    if (hot_.empty()) {
      hot_spot_ = -1;
      return;
    }
    hot_spot_ = hot_[random_.below(static_cast<int>(hot_.size()))];
    across_.clear();
    for (int buffer = 0; buffer < graph_.buffers; ++buffer)
      if (profile_.first(buffer) <= hot_spot_ && profile_.last(buffer) >= hot_spot_) across_.push_back(buffer);
  }

  // False if the move drawn is none.
  bool propose() {
    if (hot_spot_ < 0) return false;
    const int last = graph_.nodes - 1;
    const int kind = random_.below(10);
    int from, to;
    if (kind < 4) {
      if (across_.empty()) return false;
      const int buffer = across_[random_.below(static_cast<int>(across_.size()))];
      if (random_.below(2)) {  // born behind the hot spot
        from = profile_.first(buffer);
        to = hot_spot_ + random_.below(20);
        if (from < 0) return false;
      } else {  // dead before the hot spot
        from = profile_.last(buffer);
        to = hot_spot_ - random_.below(8);
        if (from > last) return false;
      }
    } else if (kind < 8) {
      from = hot_spot_ + random_.below(41) - 20;
      to = from + random_.below(61) - 30;
    } else {
      from = random_.below(graph_.nodes);
      const int reach = 1 + random_.below(1 + random_.below(options_.window));
      to = random_.below(2) ? from + reach : from - reach;
    }
    if (from < 0 || from > last) return false;
    to = std::clamp(to, 0, last);
    if (from == to || std::abs(from - to) >= options_.window) return false;
    return moves_.move(profile_.order(), from, to);
  }

  void try_move(std::int64_t temperature) {
    const std::int64_t before = profile_.excess(moves_.begin(), moves_.end(), ceiling_);
    const std::int64_t enough = before + ((temperature * random_.exponential()) >> 16);
    const std::int64_t after = profile_.replay(moves_.begin(), moves_.stretch(), ceiling_, enough);
    if (after > enough) return;
    profile_.commit();
    excess_ += after - before;
    if (after < before && (excess_ == 0 || ++improvements_ % kAcceptedPerPeak == 0)) note_peak();
    if (excess_ == 0) hot_spot_ = -1;
  }

  const Graph& graph_;
  const LocalSearchOptions& options_;
  Random random_;
  MemoryProfile profile_;
  Moves moves_;                       // the last one is the proposed one
  Order best_;
  std::int64_t best_peak_ = 0, ceiling_ = 0, excess_ = 0;
  int improvements_ = 0;

  std::vector<std::int32_t> hot_;     // positions above the ceiling
  int hot_spot_ = -1;                 // the one worked on
  std::vector<std::int32_t> across_;  // buffers live there
};

}  // namespace

Order local_search(const Graph& graph, Order start, const LocalSearchOptions& options) {
  return Search(graph, std::move(start), options).run();
}

void register_local_search(nb::module_& m) {
  m.def(
      "local_search",
      [](const Graph& graph, const Input<std::int64_t>& order, std::int64_t moves, int window, std::int64_t floor,
         std::uint64_t seed) {
        Order best = read_order(graph, order);
        {
          nb::gil_scoped_release released;
          best = local_search(graph, std::move(best), {moves, window, floor, seed});
        }
        return to_numpy(best);
      },
      nb::arg("graph"), nb::arg("order"), nb::arg("moves"), nb::arg("window"), nb::arg("floor"), nb::arg("seed"));
}

}  // namespace xla_stalloc
