// The arenas of plugins/arena as what device memory comes from: one per device.
#pragma once

#include <memory>
#include <vector>

#include "../arena/arena.h"
#include "allocator.h"

namespace stalloc {

class ArenaMemory : public Allocator {
 public:
  // `arenas` by the device's position.
  explicit ArenaMemory(std::vector<std::unique_ptr<xla_stalloc::arena::Arena>> arenas);

  uint64_t Begin(uint64_t program, uint64_t execution, uint32_t device) override;
  void* Allocate(const Key& key, size_t bytes, size_t alignment) override;
  void Release(void* pointer) override;

  // Null if there is no such device.
  xla_stalloc::arena::Arena* At(uint32_t device) const;

 private:
  std::vector<std::unique_ptr<xla_stalloc::arena::Arena>> arenas_;
};

}  // namespace stalloc
