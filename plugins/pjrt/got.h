// Leads calls of one loaded library to other functions, by writing into its global offset table (ELF; Linux on x86-64
// and aarch64). Only calls of that library change, nobody else's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stalloc {

struct Redirection {
  const char* symbol;  // the function that the library imports
  void* replacement;
};

struct Redirected {
  int slots = 0;            // table entries written; 0 if there was a problem
  uintptr_t base = 0;       // where the library lies
  std::string problem;      // why nothing was written
};

// Writes all redirections into the library behind a handle of `dlopen`, or none. A library that does not import every
// one of the symbols is a problem, and left alone. Doing it again changes nothing.
Redirected RedirectCalls(void* library, const std::vector<Redirection>& redirections);

}  // namespace stalloc
