// The memory below an arena: one range of addresses, whose pages can be given back to the system and asked for again.
#pragma once

#include <cstdint>
#include <map>

namespace xla_stalloc::arena {

// Where the bytes come from. Offsets and bytes are multiples of `granularity()`.
class Pages {
 public:
  virtual ~Pages() = default;
  virtual char* base() const = 0;  // nullptr: no memory behind, for simulations
  virtual uint64_t bytes() const = 0;
  virtual uint64_t granularity() const = 0;
  virtual bool commit(uint64_t offset, uint64_t bytes) = 0;  // false: the system has no more
  virtual void decommit(uint64_t offset, uint64_t bytes) = 0;
  // No byte of it may be touched until it is unprotected again.
  virtual void protect(uint64_t offset, uint64_t bytes, bool protect) = 0;
};

// Host memory: addresses are reserved at once, the system backs a page when it is first written.
class HostPages final : public Pages {
 public:
  explicit HostPages(uint64_t bytes);  // throws std::bad_alloc
  ~HostPages() override;
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;
  char* base() const override { return base_; }
  uint64_t bytes() const override { return bytes_; }
  uint64_t granularity() const override { return granularity_; }
  bool commit(uint64_t, uint64_t) override { return true; }
  void decommit(uint64_t offset, uint64_t bytes) override;
  void protect(uint64_t offset, uint64_t bytes, bool protect) override;

 private:
  uint64_t granularity_;
  uint64_t bytes_;
  char* base_;
};

// No memory, only the account of it; `capacity` is what the device has.
class CountedPages final : public Pages {
 public:
  CountedPages(uint64_t bytes, uint64_t granularity, uint64_t capacity)
      : bytes_(bytes), granularity_(granularity), capacity_(capacity) {}
  char* base() const override { return nullptr; }
  uint64_t bytes() const override { return bytes_; }
  uint64_t granularity() const override { return granularity_; }
  bool commit(uint64_t, uint64_t bytes) override;
  void decommit(uint64_t, uint64_t bytes) override { committed_ -= bytes; }
  void protect(uint64_t, uint64_t, bool) override {}

 private:
  uint64_t bytes_;
  uint64_t granularity_;
  uint64_t capacity_;
  uint64_t committed_ = 0;
};

// Which pages are committed. The bytes outside of any live block among them are idle.
class Committed {
 public:
  explicit Committed(Pages& pages) : pages_(pages) {}

  // Commits every page that [begin, end) touches; false, with nothing changed, if the system has no more.
  bool commit(uint64_t begin, uint64_t end);

  // Decommits the whole pages inside [begin, end), all of it free, until `enough` bytes went; returns how many went.
  uint64_t decommit(uint64_t begin, uint64_t end, uint64_t enough);

  // Bytes that `commit(begin, end)` would add.
  uint64_t missing(uint64_t begin, uint64_t end) const;
  uint64_t bytes() const { return bytes_; }

 private:
  Pages& pages_;
  std::map<uint64_t, uint64_t> ranges_;  // begin -> end, disjoint, joined
  uint64_t bytes_ = 0;
};

}  // namespace xla_stalloc::arena
