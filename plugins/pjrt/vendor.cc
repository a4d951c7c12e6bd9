#include "vendor.h"

#include <dlfcn.h>

namespace stalloc {

std::string Consume(const abi::Api* api, abi::Error* error) {
  if (error == nullptr) return "";
  auto message = Fresh<abi::ErrorMessageArgs>();
  message.error = error;
  reinterpret_cast<void (*)(abi::ErrorMessageArgs*)>(api->slots[abi::ErrorMessageArgs::kSlot])(&message);
  std::string text(message.message, message.message_size);
  auto destroy = Fresh<abi::ErrorDestroyArgs>();
  destroy.error = error;
  reinterpret_cast<void (*)(abi::ErrorDestroyArgs*)>(api->slots[abi::ErrorDestroyArgs::kSlot])(&destroy);
  return text;
}

Vendor LoadVendor(const std::string& path) {
  Vendor vendor;
  vendor.path = path;
  vendor.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (vendor.library == nullptr) {
    const char* why = dlerror();
    vendor.problem = "the plugin to wrap does not load: " + std::string(why ? why : path);
    return vendor;
  }
  auto get = reinterpret_cast<const abi::Api* (*)()>(dlsym(vendor.library, "GetPjrtApi"));
  const abi::Api* api = get == nullptr ? nullptr : get();
  if (get == nullptr) {
    vendor.problem = path + " is no PJRT plugin: it has no GetPjrtApi";
  } else if (api == nullptr) {
    vendor.problem = path + ": GetPjrtApi gave no table";
  } else if (api->version.major_version != abi::kMajorVersion) {
    vendor.problem = path + " speaks PJRT " + std::to_string(api->version.major_version) + "." +
                     std::to_string(api->version.minor_version) + "; version 0 is known here";
  } else if (!Has<abi::ClientCreateArgs>(api) || !Has<abi::ErrorDestroyArgs>(api) ||
             !Has<abi::ErrorMessageArgs>(api)) {
    vendor.problem = path + ": its table of " + std::to_string(api->struct_size) + " bytes lacks the first calls";
  } else {
    vendor.api = api;
  }
  return vendor;
}

}  // namespace stalloc
