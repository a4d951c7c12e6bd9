#include "programs.h"

#include <cstring>
#include <utility>

namespace stalloc {

void Programs::Add(abi::LoadedExecutable* executable, uint64_t fingerprint, Loaded loaded) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  loaded.program = OfLocked(fingerprint);
  loaded_[executable] = std::make_shared<const Loaded>(std::move(loaded));
}

Program* Programs::Of(uint64_t fingerprint) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  return OfLocked(fingerprint);
}

Program* Programs::OfLocked(uint64_t fingerprint) {
  std::unique_ptr<Program>& program = programs_[fingerprint];
  if (program == nullptr) {
    program = std::make_unique<Program>();
    program->fingerprint = fingerprint;
  }
  return program.get();
}

void Programs::Remove(abi::LoadedExecutable* executable) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  loaded_.erase(executable);
}

std::shared_ptr<const Loaded> Programs::Find(abi::LoadedExecutable* executable) const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto found = loaded_.find(executable);
  return found == loaded_.end() ? nullptr : found->second;
}

Programs::Figures Programs::figures() const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  Figures figures{programs_.size(), loaded_.size(), 0};
  for (const auto& [fingerprint, program] : programs_)
    figures.executions += program->executions.load(std::memory_order_relaxed);
  return figures;
}

uint64_t Fingerprint(std::string_view text, uint64_t seed) {
  constexpr uint64_t kPrime = 0x100000001b3ull;
  uint64_t hash = 0xcbf29ce484222325ull ^ seed;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 32;
  }
  for (; i < text.size(); ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * kPrime;
  hash = (hash ^ text.size()) * kPrime;
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9ull;
  hash ^= hash >> 32;
  return hash == 0 ? 1 : hash;
}

}  // namespace stalloc
