// Which execution a request for memory belongs to.
//
// XLA:CPU allocates an execution's outputs and temporaries all at once, in the order of their index, on the thread that
// runs it: the caller's for a cheap program, else one of its own, later, when the arguments are ready. Between the call
// and that thread there is nothing to hand anything over with. But executions of one device begin in the order of the
// calls, and so do those of several devices, which begin one after another. So the calls wait here in queues, and the
// first requests on a thread of XLA's belong to the call at the head of a queue whose program asks for that size first.
//
// What a program asks for is learnt from its first execution, whose end the second one waits for. If a guess is wrong
// after all (a copy for an argument that could not be donated comes on top), a request has a key that the plan does not
// expect, and the allocator serves it elsewhere; that two live blocks never overlap does not depend on keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "allocator.h"
#include "programs.h"

namespace stalloc {

// One call of execute, on all of its devices.
class Launch {
 public:
  Launch(std::shared_ptr<const Loaded> loaded, uint64_t execution, Allocator* allocator);

  const Loaded& loaded() const { return *loaded_; }
  size_t devices() const { return loaded_->devices.size(); }
  Allocator* allocator() const { return allocator_; }
  // Sizes that each device asks for, in order; null as long as they are being learnt.
  const std::vector<size_t>* sizes() const { return sizes_.get(); }
  // The key of the next request of one device, and a note of its size.
  Key NextKey(size_t device, size_t bytes);
  // Whether a device may ask for that many bytes next.
  bool Expects(size_t device, size_t bytes) const;
  // A device asked for no more than it has so far: from now on that is what is known of the program. A copy for an
  // argument that could not be donated may have come on top when the program was learnt, and it comes last.
  void EndHere(size_t device);
  // Whether a device has asked for everything.
  bool IsComplete(size_t device) const;
  // What was asked for, if all devices asked for the same; null otherwise.
  std::shared_ptr<const std::vector<size_t>> Learnt() const;
  // The vendor's events that say when each device is done; owned by this. None by default.
  void SetEnds(std::vector<abi::Event*> ends);
  // All devices are done.
  void SetOver();
  // Whether the end of a device's share is known and past.
  bool HasEnded(size_t device) const;
  ~Launch();

 private:
  friend class Launches;
  const std::shared_ptr<const Loaded> loaded_;
  const uint64_t execution_;
  Allocator* const allocator_;
  const std::shared_ptr<const std::vector<size_t>> sizes_;
  std::vector<uint64_t> tickets_;
  mutable std::mutex mutex_;
  std::vector<std::vector<size_t>> asked_;  // guarded by mutex_; per device
  std::vector<abi::Event*> ends_;           // guarded by mutex_
  bool over_ = false;                       // guarded by mutex_
  size_t begun_ = 0;                        // guarded by Launches::mutex_; devices that have begun to ask
};

class Launches {
 public:
  // To be called before the vendor is: its threads may ask before the call returns.
  void Add(const std::shared_ptr<Launch>& launch);
  // For a launch that asks on the thread of its caller, or whose call has failed.
  void Remove(const Launch* launch);
  // The launch that a thread of the vendor's begins to ask for, and which of its devices. Devices of one launch cannot
  // be told apart here; they are numbered as they come.
  std::shared_ptr<Launch> Begin(size_t bytes, size_t* device);

  struct Figures {
    uint64_t lost;  // launches that nobody asked for within as many calls as the vendor keeps under way
  };
  Figures figures() const;

 private:
  // XLA:CPU lets no more than 32 executions of a device be under way: when a call returns, those before have begun.
  static constexpr size_t kUnderWay = 33;

  mutable std::mutex mutex_;
  // By device; launches over several devices have a queue of their own.
  std::vector<std::deque<std::shared_ptr<Launch>>> queues_{1};
  uint64_t lost_ = 0;
};

}  // namespace stalloc
