#include "got.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace stalloc {
namespace {

#if defined(__x86_64__)
constexpr unsigned kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT, kAddress = R_X86_64_64;
#elif defined(__aarch64__)
constexpr unsigned kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT, kAddress = R_AARCH64_ABS64;
#else
constexpr unsigned kJumpSlot = 0, kGlobalData = 0, kAddress = 0;
#endif

// The parts of a loaded library's dynamic section that say where its imports are kept.
struct Imports {
  const char* names = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  struct Relocations {
    const ElfW(Rela)* first = nullptr;
    size_t bytes = 0;
  };
  Relocations calls, data;
};

Imports ImportsOf(const link_map* map) {
  Imports imports;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto pointer = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_STRTAB: imports.names = reinterpret_cast<const char*>(pointer); break;
      case DT_SYMTAB: imports.symbols = reinterpret_cast<const ElfW(Sym)*>(pointer); break;
      case DT_JMPREL: imports.calls.first = reinterpret_cast<const ElfW(Rela)*>(pointer); break;
      case DT_PLTRELSZ: imports.calls.bytes = entry->d_un.d_val; break;
      case DT_RELA: imports.data.first = reinterpret_cast<const ElfW(Rela)*>(pointer); break;
      case DT_RELASZ: imports.data.bytes = entry->d_un.d_val; break;
    }
  }
  return imports;
}

// Where the loader keeps the address of each symbol. A library may hold a function in several places.
std::vector<std::pair<void**, size_t>> Places(const link_map* map, const std::vector<Redirection>& redirections) {
  const Imports imports = ImportsOf(map);
  std::vector<std::pair<void**, size_t>> places;
  if (imports.names == nullptr || imports.symbols == nullptr) return places;
  for (const auto& [first, bytes] : {imports.calls, imports.data}) {
    for (size_t i = 0; first != nullptr && i < bytes / sizeof(ElfW(Rela)); ++i) {
      const unsigned type = ELF64_R_TYPE(first[i].r_info);
      if (type != kJumpSlot && type != kGlobalData && !(type == kAddress && first[i].r_addend == 0)) continue;
      const ElfW(Sym)& symbol = imports.symbols[ELF64_R_SYM(first[i].r_info)];
      if (symbol.st_shndx != SHN_UNDEF) continue;
      for (size_t which = 0; which < redirections.size(); ++which)
        if (std::strcmp(imports.names + symbol.st_name, redirections[which].symbol) == 0)
          places.emplace_back(reinterpret_cast<void**>(map->l_addr + first[i].r_offset), which);
    }
  }
  return places;
}

// The pages that the loader made read-only once it had filled in addresses; they have to become so again.
struct ReadOnly {
  uintptr_t base, begin = 0, end = 0;
};

int FindReadOnly(dl_phdr_info* info, size_t, void* found) {
  auto* read_only = static_cast<ReadOnly*>(found);
  if (info->dlpi_addr != read_only->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_GNU_RELRO) continue;
    read_only->begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    read_only->end = read_only->begin + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

bool Write(void** place, void* value, const ReadOnly& read_only) {
  const uintptr_t page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(place);
  void* page = reinterpret_cast<void*>(address & ~(page_size - 1));
  if (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(place, value, __ATOMIC_RELEASE);
  // The loader protects whole pages only.
  if (read_only.begin <= address && (address | (page_size - 1)) < read_only.end)
    mprotect(page, page_size, PROT_READ);
  return true;
}

}  // namespace

Redirected RedirectCalls(void* library, const std::vector<Redirection>& redirections) {
  Redirected result;
  link_map* map = nullptr;
  if (kJumpSlot == 0 || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
    result.problem = "calls can only be redirected on Linux, on x86-64 and aarch64";
    return result;
  }
  const auto places = Places(map, redirections);
  for (size_t which = 0; which < redirections.size(); ++which) {
    bool found = false;
    for (const auto& place : places) found |= place.second == which;
    if (!found) {
      result.problem = std::string(map->l_name) + " does not import " + redirections[which].symbol;
      return result;
    }
  }
  ReadOnly read_only{map->l_addr};
  dl_iterate_phdr(&FindReadOnly, &read_only);
  std::vector<std::pair<void**, void*>> written;
  for (const auto& [place, which] : places) {
    void* before = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!Write(place, redirections[which].replacement, read_only)) {
      result.problem = "the table of imports of " + std::string(map->l_name) + " is not writable: " + std::strerror(errno);
      for (const auto& [undo, value] : written) Write(undo, value, read_only);
      return result;
    }
    written.emplace_back(place, before);
  }
  result.slots = static_cast<int>(written.size());
  result.base = map->l_addr;
  return result;
}

}  // namespace stalloc
