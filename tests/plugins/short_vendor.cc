// A plugin of another version than any real one: a table of 90 slots at the very end of readable memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "abi.h"

#ifndef MAJOR_VERSION
#define MAJOR_VERSION 0
#endif

static void Nothing() {}

extern "C" const stalloc::abi::Api* GetPjrtApi() {
  using stalloc::abi::Api;
  static const Api* const api = [] {
    const size_t page = sysconf(_SC_PAGESIZE), bytes = offsetof(Api, slots) + 90 * sizeof(stalloc::abi::Slot);
    char* pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages + page, page, PROT_NONE);
    Api* table = reinterpret_cast<Api*>(pages + page - bytes);
    table->struct_size = bytes;
    table->version = {sizeof(stalloc::abi::ApiVersion), nullptr, MAJOR_VERSION, 3};
    for (size_t i = 0; i < 90; ++i) table->slots[i] = i == 55 ? nullptr : &Nothing;
    return table;
  }();
  return api;
}
