#include "assignment.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"

namespace xla_stalloc {

namespace {

std::vector<std::vector<int>> members_of_buffers(const Program& program) {
  std::vector<std::vector<int>> members(program.buffers);
  for (std::size_t v = 0; v < program.buffer.size(); ++v) members[program.buffer[v]].push_back(static_cast<int>(v));
  return members;
}

// The allocations of aliased arguments and of outputs, and what is put into each besides: a buffer goes to the smallest
// one that takes it and in which no live range is in its way.
class Reuse {
 public:
  Reuse(const Program& program, const SharingRules& rules, const LiveRanges& ranges)
      : rules_(rules), ranges_(ranges), members_(members_of_buffers(program)), allocation_of_(program.buffers, -1) {
    for (const int buffer : rules_.order) place(buffer);
  }

  std::vector<int> hosts() const {
    std::vector<int> host(members_.size(), Assignment::in_heap);
    for (std::size_t b = 0; b < host.size(); ++b) {
      if (allocation_of_[b] >= 0) host[b] = allocations_[allocation_of_[b]].owner;
      if (role(static_cast<int>(b)) == Role::fixed) host[b] = static_cast<int>(b);
    }
    return host;
  }

 private:
  struct Allocation {
    int owner;
    std::vector<int> values;  // by start; they may touch but do not overlap
  };

  Role role(int buffer) const { return static_cast<Role>(rules_.role[buffer]); }

  void place(int buffer) {
    if (role(buffer) == Role::fixed) return;
    if (role(buffer) != Role::argument && (reuse_operand(buffer) || reuse_any(buffer))) return;
    if (role(buffer) == Role::temp) return;
    allocations_.push_back({buffer, {}});
    put(buffer, static_cast<int>(allocations_.size()) - 1);
  }

  bool reuse_operand(int buffer) {
    for (const int operand : rules_.operands[buffer]) {
      if (allocation_of_[operand] >= 0 && fits(buffer, allocations_[allocation_of_[operand]])) {
        put(buffer, allocation_of_[operand]);
        return true;
      }
    }
    return false;
  }

  bool reuse_any(int buffer) {
    for (int a = static_cast<int>(allocations_.size()) - 1; a >= 0; --a) {
      if (fits(buffer, allocations_[a])) {
        put(buffer, a);
        return true;
      }
    }
    return false;
  }

  bool fits(int buffer, const Allocation& allocation) const {
    const std::int64_t size = rules_.size[buffer], room = rules_.size[allocation.owner];
    if (size > room || rules_.color[buffer] != rules_.color[allocation.owner]) return false;
    // An output may live longer than the program; XLA wastes nothing on it.
    if (role(buffer) == Role::output && size != room) return false;
    return std::none_of(members_[buffer].begin(), members_[buffer].end(),
                        [&](int value) { return interferes(value, allocation); });
  }

  bool interferes(int value, const Allocation& allocation) const {
    const int start = ranges_.starts[value], end = ranges_.ends[value];
    const auto& values = allocation.values;
    // Values that touch but do not overlap have their ends in the order of their starts.
    auto other = std::lower_bound(values.begin(), values.end(), start,
                                  [&](int v, int time) { return ranges_.ends[v] < time; });
    for (; other != values.end() && ranges_.starts[*other] <= end; ++other) {
      if (end == ranges_.starts[*other]) {
        if (!may_inherit(*other, value)) return true;
      } else if (ranges_.ends[*other] == start) {
        if (!may_inherit(value, *other)) return true;
      } else {
        return true;
      }
    }
    const Csr::Row copied = rules_.copied[value];
    return std::any_of(copied.begin(), copied.end(), [&](int source) {
      return std::find(values.begin(), values.end(), source) != values.end();
    });
  }

  bool may_inherit(int heir, int from) const {
    const Csr::Row heirs = rules_.heirs[from], positions = rules_.heirs_positions[from];
    for (int k = 0; k < heirs.size(); ++k) {
      if (heirs.begin()[k] == heir && positions.begin()[k] == ranges_.last_positions[from]) return true;
    }
    return false;
  }

  void put(int buffer, int a) {
    allocation_of_[buffer] = a;
    auto& values = allocations_[a].values;
    const auto key = [&](int v) { return std::make_tuple(ranges_.starts[v], ranges_.ends[v], v); };
    for (const int value : members_[buffer]) {
      values.insert(std::lower_bound(values.begin(), values.end(), value,
                                     [&](int v, int w) { return key(v) < key(w); }),
                    value);
    }
  }

  const SharingRules& rules_;
  const LiveRanges& ranges_;
  const std::vector<std::vector<int>> members_;
  std::vector<Allocation> allocations_;
  std::vector<int> allocation_of_;  // of each buffer
};

// Replays definitions and ends of lives along the schedule, as XLA's HeapSimulator does.
class HeapReplay {
 public:
  HeapReplay(const Program& program, const SharingRules& rules, const LiveRanges& ranges, int color, Assignment& out)
      : program_(program), rules_(rules), out_(out), first_(program.buffers, -1) {
    const std::size_t steps = ranges.schedule.size() + 1;
    std::vector<std::vector<int>> defined(steps);
    freed_.resize(steps);
    starts_.resize(program.buffer.size());
    ends_.resize(program.buffer.size());
    out_.block.assign(program.buffer.size(), -1);
    for (const auto& members : members_of_buffers(program)) alone_.push_back(members.size() == 1);

    std::vector<int> values;
    for (std::size_t v = 0; v < program.buffer.size(); ++v) {
      const int buffer = program.buffer[v];
      if (out.host[buffer] == Assignment::in_heap && rules.color[buffer] == color) values.push_back(static_cast<int>(v));
    }
    std::sort(values.begin(), values.end(), [&](int a, int b) {
      return std::tie(ranges.starts[a], ranges.ends[a], a) < std::tie(ranges.starts[b], ranges.ends[b], b);
    });
    for (const int v : values) {
      defined[ranges.starts[v]].push_back(v);
      freed_[ranges.ends[v]].push_back(v);
    }
    std::int64_t peak = 0;
    for (std::size_t time = 0; time < steps; ++time) {
      std::int64_t most = live_bytes_;
      for (const int value : defined[time]) {
        define(value, static_cast<int>(time));
        most = std::max(most, live_bytes_);
        if (live_bytes_ > peak) {
          peak = live_bytes_;
          out_.peak_event = static_cast<int>(out_.events.size()) - 1;
        }
      }
      out_.live_bytes.push_back(most);
      for (const int value : freed_[time]) end(value);
    }
    collect_blocks();
  }

 private:
  struct Block {
    std::int64_t size;
    int live;  // how many of its values are live now
    std::vector<int> values;
  };

  std::int64_t size(int value) const { return rules_.size[program_.buffer[value]]; }

  void define(int value, int time) {
    int& first = first_[program_.buffer[value]];
    const int with = first >= 0 ? first : take_over(value, time);
    out_.events.push_back({with >= 0 ? HeapEvent::share_with : HeapEvent::alloc, value, with});
    if (with < 0) first = value;
    if (size(value) == 0) return;
    if (with < 0) {
      out_.block[value] = static_cast<int>(blocks_.size());
      blocks_.push_back({size(value), 0, {}});
    } else {
      out_.block[value] = out_.block[with];
    }
    Block& block = blocks_[out_.block[value]];
    block.values.push_back(value);
    if (block.live++ == 0) live_bytes_ += block.size;
    starts_[value] = clock_++;
  }

  // An operand that ends now and whose memory the value may take; -1 if there is none. Ends the operand.
  int take_over(int value, int time) {
    if (!alone_[program_.buffer[value]]) return -1;
    auto& freed = freed_[time];
    for (const int operand : rules_.reuses[value]) {
      const auto it = std::find(freed.begin(), freed.end(), operand);
      if (it == freed.end() || !alone_[program_.buffer[operand]]) continue;
      freed.erase(it);
      end(operand);
      return operand;
    }
    return -1;
  }

  void end(int value) {
    out_.events.push_back({HeapEvent::free, value, -1});
    if (size(value) == 0) return;
    Block& block = blocks_[out_.block[value]];
    if (--block.live == 0) live_bytes_ -= block.size;
    ends_[value] = clock_++;
  }

  void collect_blocks() {
    std::vector<std::int32_t> offsets{0}, lives;
    for (const Block& block : blocks_) {
      out_.blocks.sizes.push_back(block.size);
      out_.blocks.ids.push_back(block.values.front());
      for (const int value : block.values) {
        lives.push_back(static_cast<std::int32_t>(lives.size()));
        out_.blocks.starts.push_back(starts_[value]);
        out_.blocks.ends.push_back(ends_[value]);
      }
      offsets.push_back(static_cast<std::int32_t>(lives.size()));
    }
    out_.blocks.lives = Csr(std::move(offsets), std::move(lives));
  }

  const Program& program_;
  const SharingRules& rules_;
  Assignment& out_;
  std::vector<int> first_;                // of each buffer: the value that got memory first
  std::vector<char> alone_;               // of each buffer: it has a single value
  std::vector<std::vector<int>> freed_;   // of each time: the values that end
  std::vector<std::int64_t> starts_, ends_;  // of each value, in ticks of the clock
  std::vector<Block> blocks_;
  std::int64_t clock_ = 0, live_bytes_ = 0;
};

}  // namespace

Assignment assign(const Program& program, const SharingRules& rules, const LiveRanges& ranges, int color,
                  std::int64_t alignment) {
  Assignment out;
  out.host = Reuse(program, rules, ranges).hosts();
  out.blocks.alignment = alignment;
  HeapReplay(program, rules, ranges, color, out);
  return out;
}

std::pair<std::vector<int>, std::int64_t> heap_bytes(const Program& program, const SharingRules& rules,
                                                      const Sequences& sequences, int color, std::int64_t alignment) {
  Assignment out = assign(program, rules, live_ranges(program, sequences), color, alignment);
  return {std::move(out.host), best_fit(out.blocks).height};
}

void register_assignment(nb::module_& m) {
  nb::class_<SharingRules>(m, "SharingRules", "What may share memory, whatever the order.")
      .def(nb::init<>())
      .def_rw("size", &SharingRules::size)
      .def_rw("color", &SharingRules::color)
      .def_rw("role", &SharingRules::role)
      .def_rw("operands", &SharingRules::operands)
      .def_rw("order", &SharingRules::order)
      .def_rw("heirs", &SharingRules::heirs)
      .def_rw("heirs_positions", &SharingRules::heirs_positions)
      .def_rw("copied", &SharingRules::copied)
      .def_rw("reuses", &SharingRules::reuses);
  nb::class_<Assignment>(m, "Assignment", "XLA's buffer assignment of one memory space.")
      .def_ro("host", &Assignment::host)
      .def_ro("block", &Assignment::block)
      .def_ro("live_bytes", &Assignment::live_bytes)
      .def_ro("peak_event", &Assignment::peak_event)
      .def_prop_ro("events",
                   [](const Assignment& self) {
                     std::vector<std::tuple<int, int, int>> events;
                     for (const HeapEvent& e : self.events) events.emplace_back(e.kind, e.value, e.with);
                     return events;
                   })
      .def("pack", [](const Assignment& self) {
        Placement placement = best_fit(self.blocks);
        return std::make_tuple(placement.height, std::move(placement.offsets));
      });
  m.def("assign", &assign, nb::arg("program"), nb::arg("rules"), nb::arg("ranges"), nb::arg("color"),
        nb::arg("alignment"), nb::call_guard<nb::gil_scoped_release>());
  m.def("heap_bytes", &heap_bytes, nb::arg("program"), nb::arg("rules"), nb::arg("sequences"), nb::arg("color"),
        nb::arg("alignment"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace xla_stalloc
