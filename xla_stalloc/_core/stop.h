// When a kernel has to return before it is done: its seconds are over, or the user pressed Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

namespace xla_stalloc {

class Stop {
 public:
  // An infinite number of seconds never ends.
  explicit Stop(double seconds) : seconds_(seconds), begin_(std::chrono::steady_clock::now()) {}

  // Called by the thousand: looks at the clock now and then, without the GIL. Stays true once it is.
  bool operator()() {
    if (stopped_ || ++calls_ % 64) return stopped_;
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    if (elapsed >= seconds_) return stopped_ = true;
    if (elapsed < next_look_) return false;
    next_look_ = elapsed + 0.05;
    const nanobind::gil_scoped_acquire held;
    interrupted_ = PyErr_CheckSignals() != 0;
    return stopped_ = interrupted_;
  }

  // To be called with the GIL: raises what the signal handler raised.
  void rethrow() const {
    if (interrupted_) throw nanobind::python_error();
  }

 private:
  double seconds_, next_look_ = 0.05;
  std::chrono::steady_clock::time_point begin_;
  unsigned calls_ = 0;
  bool stopped_ = false, interrupted_ = false;
};

}  // namespace xla_stalloc
