#include "context.h"

namespace stalloc {
namespace {

thread_local Context* t_current = nullptr;

// What this thread, one of the vendor's, is asking for.
struct Burst {
  std::shared_ptr<Launch> launch;
  size_t device = 0;
};

Burst& ThisThreadsBurst() {
  thread_local Burst burst;
  return burst;
}

Request RequestOf(Launch& launch, size_t device, size_t bytes) {
  return {launch.NextKey(device, bytes), launch.loaded().ledgers[device], launch.allocator()};
}

Request OnVendorsThread(Launches& launches, size_t bytes) {
  Burst& burst = ThisThreadsBurst();
  // A program whose sizes are being learnt may ask for anything, until it ends.
  if (burst.launch != nullptr && burst.launch->sizes() == nullptr && burst.launch->HasEnded(burst.device))
    burst.launch = nullptr;
  if (burst.launch != nullptr && !burst.launch->Expects(burst.device, bytes)) {
    burst.launch->EndHere(burst.device);
    burst.launch = nullptr;
  }
  if (burst.launch == nullptr) {
    size_t device = 0;
    if (std::shared_ptr<Launch> next = launches.Begin(bytes, &device)) burst = {std::move(next), device};
  }
  if (burst.launch == nullptr) return {};
  const Request request = RequestOf(*burst.launch, burst.device, bytes);
  if (burst.launch->IsComplete(burst.device)) burst.launch = nullptr;
  return request;
}

}  // namespace

Scope::Scope(Context* context) : before_(t_current) { t_current = context; }

Scope::~Scope() { t_current = before_; }

Request Attribute(Launches& launches, size_t bytes) {
  Context* context = t_current;
  if (context == nullptr) return OnVendorsThread(launches, bytes);
  if (context->launch == nullptr) {
    Request request;
    request.key.device = context->device;
    request.ledger = context->ledger;
    return request;
  }
  if (context->waits) {
    launches.Remove(context->launch.get());
    context->waits = false;
  }
  return RequestOf(*context->launch, context->launch_device, bytes);
}

}  // namespace stalloc
