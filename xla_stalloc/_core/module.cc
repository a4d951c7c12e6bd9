// The Python face of the C++ kernels: one register function per source file.
#include <nanobind/nanobind.h>

NB_MODULE(_core, m) { m.doc() = "C++ kernels of packing and scheduling."; }
