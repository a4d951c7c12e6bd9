#include "one_copy.h"

#include <dlfcn.h>
#include <link.h>

#include <string>

namespace stalloc {
namespace {

// What marks a copy; see control.cc.
constexpr char kMark[] = "stalloc_pjrt_mark";

struct Copy {
  void* library = nullptr;
  std::string path;
};

int Visit(dl_phdr_info* info, size_t, void* found) {
  auto* copy = static_cast<Copy*>(found);
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  // Our copies only: the name is looked at first, since a lookup in every library would take long.
  void* library = nullptr;
  if (std::string(info->dlpi_name).find("stalloc") != std::string::npos)
    library = dlopen(info->dlpi_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  if (dlsym(library, kMark) == nullptr) {
    dlclose(library);
    return 0;
  }
  copy->library = library;
  copy->path = info->dlpi_name;
  return 1;
}

const Copy& First() {
  // Leaked, as everything that calls on other threads may use while the process ends.
  static const Copy* const first = [] {
    auto* copy = new Copy;
    dl_iterate_phdr(&Visit, copy);
    return copy;
  }();
  return *first;
}

}  // namespace

void* OfTheOneCopy(const char* name) { return First().library == nullptr ? nullptr : dlsym(First().library, name); }

const char* PathOfTheOneCopy() { return First().path.c_str(); }

}  // namespace stalloc
