// The wrapped plugin: found by path, loaded once, called through its own table.
#pragma once

#include <cstddef>
#include <string>

#include "abi.h"

namespace stalloc {

// True where a table of `struct_size` bytes has the slot of `Args`, and the vendor fills it.
template <class Args>
bool Has(const abi::Api* api) {
  return offsetof(abi::Api, slots) + (Args::kSlot + 1) * sizeof(abi::Slot) <= api->struct_size &&
         api->slots[Args::kSlot] != nullptr;
}

// Calls a slot that is there (`Has`).
template <class Args>
abi::Error* Call(const abi::Api* api, Args* args) {
  return reinterpret_cast<abi::Error* (*)(Args*)>(api->slots[Args::kSlot])(args);
}

// Arguments all zero but for their size.
template <class Args>
Args Fresh() {
  Args args{};
  args.struct_size = sizeof(Args);
  return args;
}

// Frees an error and returns its message; an empty text for null.
std::string Consume(const abi::Api* api, abi::Error* error);

// A call of ours beside those of the user: false, with the error freed, where the slot is missing or the call fails.
template <class Args>
bool Try(const abi::Api* api, Args* args) {
  if (!Has<Args>(api)) return false;
  abi::Error* error = Call(api, args);
  if (error == nullptr) return true;
  Consume(api, error);
  return false;
}

struct Vendor {
  const abi::Api* api = nullptr;  // null: `problem` says why
  void* library = nullptr;        // handle of dlopen, never closed
  std::string path;
  bool is_cuda = false;           // its calls of dlsym are led to cuda_memory.h
  std::string problem;
};

// Loads the plugin at `path` and takes its table. The table's major version has to be the one declared in abi.h.
Vendor LoadVendor(const std::string& path);

}  // namespace stalloc
