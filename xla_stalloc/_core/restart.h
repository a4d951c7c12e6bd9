// One bounded attempt of a search that starts over again and again.
#pragma once

#include <cstdint>

#include "random.h"

namespace xla_stalloc {

enum class Verdict {
  kFits,        // offsets were found
  kInfeasible,  // proven: there are none
  kUnknown,     // the attempt used up its nodes, or was stopped
};

// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..., from 1 up (Luby, Sinclair, Zuckerman 1993): the best restarts, a constant apart,
// for a search of which nothing is known.
inline std::int64_t luby(std::int64_t attempt) {
  for (;;) {
    std::int64_t power = 1;
    while (power <= attempt) power *= 2;
    if (attempt == power - 1) return power / 2;
    attempt -= power / 2 - 1;
  }
}

// A factor between 1 / (1 + noise) and 1 + noise. Without libm, which may differ between hosts.
inline double jitter(Random& random, double noise) {
  const double amount = static_cast<double>(random.next() >> 11) * (2.0 / 9007199254740992.0) - 1;  // in [-1, 1)
  return amount >= 0 ? 1 + noise * amount : 1 / (1 - noise * amount);
}

}  // namespace xla_stalloc
