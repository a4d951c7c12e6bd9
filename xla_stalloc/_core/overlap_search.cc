#include "overlap_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "memory_profile.h"
#include "moves.h"
#include "random.h"

namespace xla_stalloc {

namespace {

constexpr int kMovesPerLook = 256;          // between two looks at where communication is exposed
constexpr int kCycles = 2;                  // of cooling
constexpr int kCoolingSteps = 10;           // halvings of the temperature in a cycle
constexpr std::int64_t kHottest = 100'000;  // ns
constexpr int kDriftless = 8;               // one in so many moves without effect is made
constexpr std::int64_t kShortWait = 1'000;  // ns; not worth a look

class Search {
 public:
  Search(const Graph& graph, const std::vector<Scenario>& scenarios, Order start, const OverlapOptions& options)
      : graph_(graph),
        options_(options),
        random_(options.seed),
        memory_(graph, start),
        moves_(graph) {
    for (const Scenario& scenario : scenarios) {
      simulations_.emplace_back(*scenario.streams, start);
      weights_.push_back(scenario.weight);
    }
    cost_ = best_cost_ = weighted([](const StreamSimulation& s) { return s.exposed(); });
    best_ = std::move(start);
  }

  Order run() {
    for (std::int64_t move = 0; move < options_.moves && best_cost_ > 0; ++move) {
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

  // Finds the nodes that hold up the compute stream in one of the scenarios.
  void look() {
    const StreamSimulation& simulation = simulations_[random_.below(static_cast<int>(simulations_.size()))];
    waiting_.clear();
    for (int k = 0; k < graph_.nodes; ++k)
      if (simulation.wait(k) > kShortWait) waiting_.push_back(simulation.order()[k]);
  }

  template <typename Exposed>
  std::int64_t weighted(const Exposed& exposed) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < simulations_.size(); ++i) sum += weights_[i] * exposed(simulations_[i]);
    return sum;
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
      const int wait = memory_.position(waiter), start = memory_.position(streams().waits_for[waiter]);
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
        if (from >= 0 && streams().communication[memory_.order()[from]] == 0) return false;
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
    const std::int64_t then = weighted([&](StreamSimulation& s) { return s.replay(moves_.begin(), moves_.stretch()); });
    // Most of what changes nothing is left alone: orders that drift leave holes in the heap.
    if (then == cost_ && random_.below(kDriftless) != 0) return;
    if (then > cost_ + ((temperature * random_.exponential()) >> 16)) return;
    memory_.commit();
    for (StreamSimulation& simulation : simulations_) simulation.commit();
    cost_ = then;
    if (cost_ >= best_cost_) return;
    best_cost_ = cost_;
    best_ = memory_.order();
  }

  const Streams& streams() const { return simulations_.front().streams(); }

  const Graph& graph_;
  const OverlapOptions& options_;
  Random random_;
  MemoryProfile memory_;
  std::vector<StreamSimulation> simulations_;  // of the same order, one for each scenario
  std::vector<std::int64_t> weights_;
  Moves moves_;  // the last one is the proposed one
  Order best_;
  std::int64_t cost_ = 0, best_cost_ = 0;
  std::vector<std::int32_t> waiting_;
};

}  // namespace

Order overlap_search(const Graph& graph, const std::vector<Scenario>& scenarios, Order start,
                     const OverlapOptions& options) {
  return Search(graph, scenarios, std::move(start), options).run();
}

void register_overlap_search(nb::module_& m) {
  m.def(
      "overlap_search",
      [](const Graph& graph, const std::vector<std::pair<const Streams*, std::int64_t>>& scenarios,
         const Input<std::int64_t>& order, std::int64_t limit, std::int64_t moves, int window, std::uint64_t seed) {
        Order best = read_order(graph, order);
        std::vector<Scenario> read;
        for (const auto& [streams, weight] : scenarios) read.push_back({streams, weight});
        {
          nb::gil_scoped_release released;
          best = overlap_search(graph, read, std::move(best), {limit, moves, window, seed});
        }
        return to_numpy(best);
      },
      nb::arg("graph"), nb::arg("scenarios"), nb::arg("order"), nb::arg("limit"), nb::arg("moves"), nb::arg("window"),
      nb::arg("seed"));
}

}  // namespace xla_stalloc
