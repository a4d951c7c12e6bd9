// What the Python side calls, as plain C functions; xla_stalloc/inject/native.py declares them again.
#pragma once

#include <cstdint>
#include <string>

#include "abi.h"

#define STALLOC_EXPORT extern "C" __attribute__((visibility("default")))

namespace stalloc {

// The plugin to wrap: what `stalloc_wrap` said, else the path in XLA_STALLOC_WRAPS. Empty, with a reason, if neither
// names a file.
struct Wanted {
  std::string path;
  std::string problem;
};
Wanted PluginToWrap();

// The table of this copy of the library; a `Refusal` where nothing can be wrapped.
const abi::Api* WrappedApi();

}  // namespace stalloc

// Names the plugin that GetPjrtApi wraps, or says why there is none (`path` null). Call it before JAX loads the plugin.
STALLOC_EXPORT void stalloc_wrap(const char* path, const char* problem);

// Serves the device memory of a library that is loaded already, without any plugin: jaxlib's own libjax_common.so.
// Returns "" or what is in the way; the text lives until the next call of the same thread.
STALLOC_EXPORT const char* stalloc_attach(const char* path);

// Around an upload of `stalloc_calibration_bytes()` bytes by the calling thread.
STALLOC_EXPORT uint64_t stalloc_calibration_bytes();
STALLOC_EXPORT void stalloc_calibration_begin();
STALLOC_EXPORT int stalloc_calibration_end();  // 1 if the allocation was seen

// An execution that is called by somebody else than through GetPjrtApi, on the first `devices` devices: what it asks for
// between the two calls, and later on threads of its own, gets keys once the program is known. The first execution has
// to be over when `stalloc_execution_end(execution, 1)` is called; the others may go on, with 0. Same thread, nested.
STALLOC_EXPORT void* stalloc_execution_begin(uint64_t program, uint32_t devices);
STALLOC_EXPORT void stalloc_execution_end(void* execution, int is_over);
// Whether the program is known.
STALLOC_EXPORT int stalloc_program_is_known(uint64_t program);

// Why device memory is not served, or "". Lives until the next call of the same thread.
STALLOC_EXPORT const char* stalloc_memory_problem();

// Path of the copy of this library that acts for the process; call the functions of that copy.
STALLOC_EXPORT const char* stalloc_acting_path();

struct stalloc_figures {
  uint64_t clients, compiles, loads, executions, uploads, buffers_destroyed, programs, loaded_executables,
      live_blocks, lost_launches;
};
STALLOC_EXPORT void stalloc_read_figures(stalloc_figures* figures);

// What was asked for and released since `stalloc_record(1)`, in order; `stalloc_record(0)` ends it. For traces of a job.
struct stalloc_event {
  uint64_t program, execution, device, allocation, address, bytes;  // a release: only the address
};
STALLOC_EXPORT void stalloc_record(int on);
// Takes out up to `limit` events; returns how many.
STALLOC_EXPORT uint64_t stalloc_take_events(stalloc_event* events, uint64_t limit);

// Bytes, of the device at a position among the addressable ones; -1: memory whose device is not known.
struct stalloc_memory {
  int64_t bytes_in_use, peak_bytes_in_use, num_allocs, largest_alloc_size, bytes_limit;
};
// 0 if there never was such a device.
STALLOC_EXPORT int stalloc_read_memory(int64_t device, stalloc_memory* memory);

// A plan of a job, as tables: runs of programs, the slots of each run (in order), the blocks of each slot (in order).
struct stalloc_plan {
  uint64_t height, cycle, runs, slots, blocks;
  const uint64_t *run_programs, *run_slots, *run_repeats, *slot_blocks, *block_offsets, *block_bytes;
};
// Serves host memory of `devices` devices from arenas of that many bytes of addresses each. `debug`: with canaries,
// poison on free, and a second account of what lives. Returns "" or what is wrong with the plan.
STALLOC_EXPORT const char* stalloc_serve(uint32_t devices, uint64_t bytes, const stalloc_plan* plan, int debug);

struct stalloc_arena {
  uint64_t requests, hits, unknown_program, unknown_index, unfit, occupied, in_gaps, in_overflow, failures, live_blocks,
      in_use_bytes, peak_in_use_bytes, reserved_bytes, peak_reserved_bytes;
};
// 0 if no arena serves that device.
STALLOC_EXPORT int stalloc_read_arena(uint32_t device, stalloc_arena* figures);
