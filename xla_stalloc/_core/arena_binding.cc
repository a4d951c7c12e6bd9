#include "arena_binding.h"

#include <memory>
#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../../plugins/arena/arena.h"
#include "arrays.h"

namespace xla_stalloc {
namespace {

using arena::Arena;
using arena::Execution;
using arena::Plan;
using arena::Statistics;

Plan plan_of(std::uint64_t height, std::uint32_t cycle, const Input<std::uint64_t>& programs,
             const Input<std::int64_t>& run_slots, const Input<std::uint8_t>& repeats,
             const Input<std::int64_t>& slot_blocks, const Input<std::int64_t>& offsets,
             const Input<std::int64_t>& sizes) {
  if (run_slots.size() != programs.size() || repeats.size() != programs.size() || offsets.size() != sizes.size()) {
    throw std::invalid_argument("arena plan: columns of one table differ in length");
  }
  Plan plan;
  plan.height = height;
  plan.cycle = cycle;
  std::uint32_t slot = 0;
  for (std::size_t run = 0; run < programs.size(); ++run) {
    const auto slots = static_cast<std::uint32_t>(run_slots.data()[run]);
    plan.runs.push_back({programs.data()[run], slot, slots, repeats.data()[run] != 0});
    slot += slots;
  }
  std::uint32_t block = 0;
  for (std::size_t number = 0; number < slot_blocks.size(); ++number) {
    const auto blocks = static_cast<std::uint32_t>(slot_blocks.data()[number]);
    plan.slots.push_back({block, blocks});
    block += blocks;
  }
  for (std::size_t number = 0; number < offsets.size(); ++number) {
    plan.blocks.push_back(
        {static_cast<std::uint64_t>(offsets.data()[number]), static_cast<std::uint64_t>(sizes.data()[number])});
  }
  return plan;
}

enum Operation : std::uint8_t { kBegin = 0, kRequest = 1, kRelease = 2 };

// Runs the events of a whole job. kBegin: `first` is the program. kRequest: the index in the execution begun last, and
// the bytes. kRelease: `first` is the number of the request whose block goes. Returns the offset of each request, -1 if
// it was not served.
Int64Output replay(Arena& arena, const Input<std::uint8_t>& operations, const Input<std::uint64_t>& first,
                   const Input<std::uint64_t>& bytes) {
  if (first.size() != operations.size() || bytes.size() != operations.size()) {
    throw std::invalid_argument("events: columns differ in length");
  }
  std::vector<std::int64_t> offsets;
  {
    nb::gil_scoped_release released;
    Execution execution;
    for (std::size_t event = 0; event < operations.size(); ++event) {
      const std::uint64_t argument = first.data()[event];
      switch (operations.data()[event]) {
        case kBegin:
          execution = arena.begin(argument);
          break;
        case kRequest: {
          const auto offset = arena.request(execution, static_cast<std::uint32_t>(argument), bytes.data()[event]);
          offsets.push_back(offset ? static_cast<std::int64_t>(*offset) : -1);
          break;
        }
        case kRelease:
          if (argument >= offsets.size()) throw std::invalid_argument("events: a release before its request");
          if (offsets[argument] >= 0) arena.release(static_cast<std::uint64_t>(offsets[argument]));
          break;
        default:
          throw std::invalid_argument("events: an operation is not 0, 1 or 2");
      }
    }
  }
  return to_numpy(offsets);
}

}  // namespace

void register_arena(nb::module_& m) {
  nb::exception<arena::Inconsistency>(m, "ArenaInconsistency", PyExc_RuntimeError);
  nb::class_<Execution>(m, "ArenaExecution").def_ro("slot", &Execution::slot);
  nb::class_<Statistics>(m, "ArenaStatistics")
      .def_ro("requests", &Statistics::requests)
      .def_ro("hits", &Statistics::hits)
      .def_ro("unknown_program", &Statistics::unknown_program)
      .def_ro("unknown_index", &Statistics::unknown_index)
      .def_ro("unfit", &Statistics::unfit)
      .def_ro("occupied", &Statistics::occupied)
      .def_ro("in_gaps", &Statistics::in_gaps)
      .def_ro("in_overflow", &Statistics::in_overflow)
      .def_ro("failures", &Statistics::failures)
      .def_ro("live_blocks", &Statistics::live_blocks)
      .def_ro("in_use_bytes", &Statistics::in_use_bytes)
      .def_ro("peak_in_use_bytes", &Statistics::peak_in_use_bytes)
      .def_ro("reserved_bytes", &Statistics::reserved_bytes)
      .def_ro("peak_reserved_bytes", &Statistics::peak_reserved_bytes)
      .def_ro("largest_free_bytes", &Statistics::largest_free_bytes);
  nb::class_<Arena>(m, "Arena")
      .def(
          "__init__",
          [](Arena* self, std::uint64_t height, std::uint32_t cycle, const Input<std::uint64_t>& programs,
             const Input<std::int64_t>& run_slots, const Input<std::uint8_t>& repeats,
             const Input<std::int64_t>& slot_blocks, const Input<std::int64_t>& offsets,
             const Input<std::int64_t>& sizes, std::uint64_t addresses, std::uint64_t capacity,
             std::uint64_t granularity, bool memory, std::uint32_t pipeline, double idle_fraction, bool shadow,
             bool poison, std::uint64_t red_zone) {
            std::unique_ptr<arena::Pages> pages;
            if (memory) {
              pages = std::make_unique<arena::HostPages>(addresses);
            } else {
              pages = std::make_unique<arena::CountedPages>(addresses, granularity, capacity);
            }
            new (self) Arena(std::move(pages),
                             plan_of(height, cycle, programs, run_slots, repeats, slot_blocks, offsets, sizes),
                             {pipeline, idle_fraction, shadow, poison, red_zone});
          },
          nb::arg("height"), nb::arg("cycle"), nb::arg("programs"), nb::arg("run_slots"), nb::arg("repeats"),
          nb::arg("slot_blocks"), nb::arg("offsets"), nb::arg("sizes"), nb::arg("addresses"), nb::arg("capacity"),
          nb::arg("granularity"), nb::arg("memory"), nb::arg("pipeline"), nb::arg("idle_fraction"), nb::arg("shadow"),
          nb::arg("poison"), nb::arg("red_zone"))
      .def("begin", &Arena::begin, nb::arg("program"))
      .def("request", &Arena::request, nb::arg("execution"), nb::arg("index"), nb::arg("bytes"),
           nb::arg("alignment") = Arena::kAlignment)
      .def("release", &Arena::release, nb::arg("offset"))
      .def("trim", &Arena::trim)
      .def("statistics", &Arena::statistics)
      .def("why_not", &Arena::why_not, nb::arg("bytes"))
      .def_prop_ro("base", [](const Arena& self) { return reinterpret_cast<std::uintptr_t>(self.base()); })
      .def("replay", &replay, nb::arg("operations"), nb::arg("first"), nb::arg("bytes"));
}

}  // namespace xla_stalloc
