// The arena for Python: simulations and tests run the very code that serves a device.
#pragma once

#include <nanobind/nanobind.h>

namespace xla_stalloc {

void register_arena(nanobind::module_& m);

}  // namespace xla_stalloc
