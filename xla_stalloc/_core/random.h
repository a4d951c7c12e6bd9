// A random stream that is the same on every host: std::uniform_*_distribution and libm may differ between them.
#pragma once

#include <cstdint>

namespace xla_stalloc {

class Random {  // splitmix64 (Steele, Lea, Flood 2014)
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // In [0, bound), bound below 2^31; the bias of at most bound / 2^32 does not matter to a search.
  int below(int bound) { return static_cast<int>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32); }

  // About -log2 of a uniform number, times 2^16: what an annealer compares a loss with, without floating point.
  std::int64_t exponential() {
    std::uint64_t bits = next() | 1;
    std::int64_t whole = 0;
    while (!(bits >> 63)) bits <<= 1, ++whole;
    const auto fraction = static_cast<std::int64_t>((bits >> 47) & 0xFFFF);
    return (whole << 16) + (0xFFFF - fraction);
  }

 private:
  std::uint64_t state_;
};

}  // namespace xla_stalloc
