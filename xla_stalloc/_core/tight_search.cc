#include "tight_search.h"

#include <utility>

#include <nanobind/stl/pair.h>

#include "arrays.h"

namespace xla_stalloc {

TightSearch::TightSearch(const std::vector<std::int64_t>& lower, const std::vector<std::int64_t>& upper,
                         std::vector<std::int64_t> sizes, std::uint64_t seed)
    : sections_(lower, upper, std::move(sizes)), niche_(sections_, seed), canonical_(sections_, seed) {}

Verdict TightSearch::pack(std::int64_t capacity, std::int64_t work, Stop& stop) {
  const std::int64_t begin = this->work();
  do {
    const bool niche = niche_.work() <= canonical_.work() || sections_.items > kMostCanonical;
    const Verdict verdict = niche ? niche_.attempt(capacity, stop) : canonical_.attempt(capacity, stop);
    offsets_ = niche ? &niche_.offsets() : &canonical_.offsets();
    if (verdict != Verdict::kUnknown) return verdict;
  } while (this->work() - begin < work && !stop());
  return Verdict::kUnknown;
}

void register_tight_search(nb::module_& m) {
  nb::enum_<Verdict>(m, "Verdict")
      .value("FITS", Verdict::kFits)
      .value("INFEASIBLE", Verdict::kInfeasible)
      .value("UNKNOWN", Verdict::kUnknown);
  nb::class_<TightSearch>(m, "TightSearch")
      .def(
          "__init__",
          [](TightSearch* self, const Input<std::int64_t>& lower, const Input<std::int64_t>& upper,
             const Input<std::int64_t>& sizes, std::uint64_t seed) {
            new (self) TightSearch(to_vector<std::int64_t>(lower), to_vector<std::int64_t>(upper),
                                   to_vector<std::int64_t>(sizes), seed);
          },
          nb::arg("lower"), nb::arg("upper"), nb::arg("sizes"), nb::arg("seed"))
      .def_prop_ro("work", &TightSearch::work)
      .def(
          "pack",
          [](TightSearch& self, std::int64_t capacity, std::int64_t work, double seconds) {
            Stop stop(seconds);
            Verdict verdict;
            {
              nb::gil_scoped_release released;
              verdict = self.pack(capacity, work, stop);
            }
            stop.rethrow();
            const bool fits = verdict == Verdict::kFits;
            return std::make_pair(verdict, to_numpy(fits ? self.offsets() : std::vector<std::int64_t>()));
          },
          nb::arg("capacity"), nb::arg("work"), nb::arg("seconds"));
}

}  // namespace xla_stalloc
