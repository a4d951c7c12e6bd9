#include "refusal.h"

#include <cstddef>

#include "vendor.h"

namespace stalloc {
namespace {

// As many slots as PJRT 0.115 has: whatever a framework calls first has to be there.
constexpr size_t kSlots = 138;
constexpr int32_t kMinorVersion = 115;

struct Refused {
  abi::Api head;
  abi::Slot rest[kSlots - 1];
};
static_assert(offsetof(Refused, rest) == offsetof(abi::Api, slots) + sizeof(abi::Slot));

std::string* g_problem;

// The error is no object of its own, only an address that is not null.
abi::Error* TheError() { return reinterpret_cast<abi::Error*>(g_problem); }

abi::Error* Refuse(abi::Head*) { return TheError(); }

void Destroy(abi::ErrorDestroyArgs*) {}

void Message(abi::ErrorMessageArgs* args) {
  args->message = g_problem->data();
  args->message_size = g_problem->size();
}

abi::Error* GetCode(abi::ErrorGetCodeArgs* args) {
  args->code = abi::kFailedPrecondition;
  return nullptr;
}

// PJRT_Error_ForEachPayload: there are none.
abi::Error* NoPayload(abi::Head*) { return nullptr; }
constexpr size_t kErrorForEachPayload = 132;

abi::Error* NoAttributes(abi::PluginAttributesArgs* args) {
  args->attributes = nullptr;
  args->num_attributes = 0;
  return nullptr;
}

const abi::Api* Build(const std::string& problem) {
  g_problem = new std::string("xla_stalloc: " + problem);
  auto* refused = new Refused{};
  abi::Slot* slots = refused->head.slots;
  for (size_t i = 0; i < kSlots; ++i) slots[i] = reinterpret_cast<abi::Slot>(&Refuse);
  slots[abi::ErrorDestroyArgs::kSlot] = reinterpret_cast<abi::Slot>(&Destroy);
  slots[abi::ErrorMessageArgs::kSlot] = reinterpret_cast<abi::Slot>(&Message);
  slots[abi::ErrorGetCodeArgs::kSlot] = reinterpret_cast<abi::Slot>(&GetCode);
  slots[abi::PluginAttributesArgs::kSlot] = reinterpret_cast<abi::Slot>(&NoAttributes);
  slots[kErrorForEachPayload] = reinterpret_cast<abi::Slot>(&NoPayload);
  refused->head.struct_size = offsetof(abi::Api, slots) + kSlots * sizeof(abi::Slot);
  refused->head.version = {sizeof(abi::ApiVersion), nullptr, abi::kMajorVersion, kMinorVersion};
  return &refused->head;
}

}  // namespace

const abi::Api* Refusal(const std::string& problem) {
  static const abi::Api* const api = Build(problem);
  return api;
}

}  // namespace stalloc
