#include "overlap_search.h"

#include <algorithm>
#include <utility>

#include "arrays.h"
#include "memory_profile.h"
#include "moves.h"
#include "random.h"

namespace xla_stalloc {

namespace {

constexpr int kMovesPerLook = 256;          // between two looks at where communication is exposed
constexpr int kCycles = 2;                  // of cooling
constexpr int kCoolingSteps = 10;           // halvings of the temperature in a cycle
constexpr std::int64_t kHottest = 20'000;   // ns
constexpr std::int64_t kShortWait = 1'000;  // ns; not worth a look

class Search {
 public:
  Search(const Graph& graph, const Streams& streams, Order start, const OverlapOptions& options)
      : graph_(graph),
        streams_(streams),
        options_(options),
        random_(options.seed),
        memory_(graph, start),
        simulation_(streams, std::move(start)),
        moves_(graph) {
    best_ = simulation_.order();
    best_exposed_ = simulation_.exposed();
  }

  Order run() {
    for (std::int64_t move = 0; move < options_.moves && best_exposed_ > 0; ++move) {
      if (move % kMovesPerLook == 0) look();
      if (propose()) try_move(temperature(move));
    }
    return best_;
  }

 private:
  std::int64_t temperature(std::int64_t move) const {
    const std::int64_t cycle = std::max<std::int64_t>(1, options_.moves / kCycles);
    return kHottest >> ((move % cycle) * kCoolingSteps / cycle);
  }

  // Finds the nodes that hold up the compute stream.
  void look() {
    waiting_.clear();
    for (int k = 0; k < graph_.nodes; ++k)
      if (simulation_.wait(k) > kShortWait) waiting_.push_back(simulation_.order()[k]);
  }

  int near(int position, int reach) {
    const int distance = 1 + random_.below(1 + random_.below(reach));
    return random_.below(2) ? position + distance : position - distance;
  }

  // False if the move drawn is none.
  bool propose() {
    const int last = graph_.nodes - 1;
    int from, to;
    const int kind = waiting_.empty() ? 9 : random_.below(10);
    if (kind < 8) {
      const int waiter = waiting_[random_.below(static_cast<int>(waiting_.size()))];
      const int wait = memory_.position(waiter), start = memory_.position(streams_.waits_for[waiter]);
      if (kind < 2) {  // start earlier
        from = start;
        to = start - 1 - random_.below(1 + random_.below(options_.window / 2));
      } else if (kind < 4) {  // wait later
        from = wait;
        to = wait + 1 + random_.below(1 + random_.below(options_.window / 4));
      } else if (kind < 6) {  // something from behind meanwhile
        from = wait + 1 + random_.below(options_.window / 4);
        to = start < wait ? start + 1 + random_.below(wait - start) : wait;
      } else if (kind < 7) {  // something from before meanwhile
        from = start - 1 - random_.below(options_.window / 4);
        to = start + random_.below(1 + std::max(0, wait - start - 1));
      } else {  // another start out of its way
        from = start - 1 - random_.below(options_.window / 8);
        to = wait + random_.below(40);
        if (from >= 0 && streams_.communication[memory_.order()[from]] == 0) return false;
      }
    } else {
      from = random_.below(graph_.nodes);
      to = near(from, options_.window / 2);
    }
    if (from < 0 || from > last) return false;
    to = std::clamp(to, 0, last);
    if (from == to || std::abs(from - to) >= options_.window) return false;
    return moves_.move(memory_.order(), from, to);
  }

  void try_move(std::int64_t temperature) {
    const std::int64_t before = memory_.excess(moves_.begin(), moves_.end(), options_.limit);
    if (memory_.replay(moves_.begin(), moves_.stretch(), options_.limit, before) > before) return;
    const std::int64_t enough = simulation_.exposed() + ((temperature * random_.exponential()) >> 16);
    if (simulation_.replay(moves_.begin(), moves_.stretch()) > enough) return;
    memory_.commit();
    simulation_.commit();
    if (simulation_.exposed() >= best_exposed_) return;
    best_exposed_ = simulation_.exposed();
    best_ = simulation_.order();
  }

  const Graph& graph_;
  const Streams& streams_;
  const OverlapOptions& options_;
  Random random_;
  MemoryProfile memory_;
  StreamSimulation simulation_;
  Moves moves_;  // the last one is the proposed one
  Order best_;
  std::int64_t best_exposed_ = 0;
  std::vector<std::int32_t> waiting_;
};

}  // namespace

Order overlap_search(const Graph& graph, const Streams& streams, Order start, const OverlapOptions& options) {
  return Search(graph, streams, std::move(start), options).run();
}

void register_overlap_search(nb::module_& m) {
  m.def(
      "overlap_search",
      [](const Graph& graph, const Streams& streams, const Input<std::int64_t>& order, std::int64_t limit,
         std::int64_t moves, int window, std::uint64_t seed) {
        Order best = read_order(graph, order);
        {
          nb::gil_scoped_release released;
          best = overlap_search(graph, streams, std::move(best), {limit, moves, window, seed});
        }
        return to_numpy(best);
      },
      nb::arg("graph"), nb::arg("streams"), nb::arg("order"), nb::arg("limit"), nb::arg("moves"), nb::arg("window"),
      nb::arg("seed"));
}

}  // namespace xla_stalloc
