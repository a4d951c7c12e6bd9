#include "live_ranges.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>

#include <nanobind/stl/vector.h>

#include "arrays.h"

namespace xla_stalloc {

namespace {

// Lays the sequences of all computations on one time line: a called computation runs just before its caller.
class TimeLine {
 public:
  TimeLine(const Program& program, const Sequences& sequences, LiveRanges& out)
      : program_(program), sequences_(sequences), out_(out), spans_(sequences.size()) {
    out_.times.assign(program.instructions, -1);
    run(program.entry);
  }

  int at(Moment moment) const {
    if (moment >= 0) return out_.times[moment];
    const Span& span = spans_[(-1 - moment) / 2];
    return (-1 - moment) % 2 == 0 ? span.begin : span.end;
  }

 private:
  struct Span {
    int begin = -1, end = -1;
  };

  int now() const { return static_cast<int>(out_.schedule.size()); }

  void run(int computation) {
    if (spans_[computation].begin >= 0) return;
    spans_[computation].begin = now();
    for (const int instruction : sequences_[computation]) {
      if (instruction < 0 || instruction >= program_.instructions || out_.times[instruction] >= 0) {
        throw std::invalid_argument("a sequence repeats instruction " + std::to_string(instruction) +
                                    " or names one that does not exist");
      }
      for (const int callee : program_.callees[instruction]) run(callee);
      out_.times[instruction] = now();
      out_.schedule.push_back(instruction);
    }
    spans_[computation].end = now();
  }

  const Program& program_;
  const Sequences& sequences_;
  LiveRanges& out_;
  std::vector<Span> spans_;
};

// Values of one must-alias set live one after the other: an earlier one ends where the next begins.
void normalize_aliased(const Program& program, LiveRanges& out) {
  std::vector<std::vector<int>> members(program.buffers);
  for (std::size_t v = 0; v < out.starts.size(); ++v) members[program.buffer[v]].push_back(static_cast<int>(v));
  for (auto& values : members) {
    std::sort(values.begin(), values.end(), [&](int a, int b) {
      return std::tie(out.starts[a], out.ends[a], a) < std::tie(out.starts[b], out.ends[b], b);
    });
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const int a = values[i], b = values[i + 1];
      out.ends[b] = std::max(out.ends[a], out.ends[b]);
      out.ends[a] = std::min(out.ends[a], out.starts[b]);
    }
  }
}

}  // namespace

LiveRanges live_ranges(const Program& program, const Sequences& sequences) {
  LiveRanges out;
  const TimeLine line(program, sequences, out);
  const int program_end = static_cast<int>(out.schedule.size());
  const int values = static_cast<int>(program.buffer.size());
  out.last_positions.assign(values, 0);
  for (int v = 0; v < values; ++v) {
    int end = -1, place = 0;
    for (const Moment moment : program.positions[v]) {
      if (line.at(moment) > end) {
        end = line.at(moment);
        out.last_positions[v] = place;
      }
      ++place;
    }
    for (const Moment moment : program.uses[v]) end = std::max(end, line.at(moment));
    out.starts.push_back(line.at(program.start[v]));
    out.ends.push_back(program.read_only_argument[v] ? program_end : end);
  }
  normalize_aliased(program, out);
  return out;
}

void register_live_ranges(nb::module_& m) {
  const auto csr = [](const Input<std::int64_t>& offsets, const Input<std::int64_t>& items) {
    return Csr(to_vector<std::int32_t>(offsets), to_vector<std::int32_t>(items));
  };
  nb::class_<Csr>(m, "Csr", "Rows of numbers, one behind the other.")
      .def(nb::new_(csr), nb::arg("offsets"), nb::arg("items"));
  nb::class_<Program>(m, "Program", "What defines and uses each value, whatever the order.")
      .def(nb::init<>())
      .def_rw("entry", &Program::entry)
      .def_rw("instructions", &Program::instructions)
      .def_rw("buffers", &Program::buffers)
      .def_rw("callees", &Program::callees)
      .def_rw("start", &Program::start)
      .def_rw("positions", &Program::positions)
      .def_rw("uses", &Program::uses)
      .def_rw("read_only_argument", &Program::read_only_argument)
      .def_rw("buffer", &Program::buffer);
  nb::class_<LiveRanges>(m, "LiveRanges", "When each value lives.")
      .def_ro("schedule", &LiveRanges::schedule)
      .def_ro("starts", &LiveRanges::starts)
      .def_ro("ends", &LiveRanges::ends);
  m.def("live_ranges", &live_ranges, nb::arg("program"), nb::arg("sequences"),
        nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace xla_stalloc
