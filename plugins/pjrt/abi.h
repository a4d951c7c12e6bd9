// The part of the PJRT C ABI that this plugin touches, declared anew.
//
// The ABI (xla/pjrt/c/pjrt_c_api.h in OpenXLA) is one table of function pointers behind a small head. Slots are only
// ever appended and never move, structs only grow at their end, and both say how large they are in `struct_size`. So a
// table can be copied and forwarded without knowing all of it, and a slot is known by its index.
// tests/plugins/test_abi.py holds every index and offset below against tables generated from the original header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stalloc::abi {

// Objects of the vendor's, only ever passed on.
struct Error;
struct Event;
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct Executable;
struct LoadedExecutable;
struct Buffer;
struct NamedValue;
struct CopyToDeviceStream;

struct ExtensionBase {
  size_t struct_size;
  int32_t type;
  ExtensionBase* next;
};

struct ApiVersion {
  size_t struct_size;
  ExtensionBase* extension_start;
  int32_t major_version;
  int32_t minor_version;
};

using Slot = void (*)();

// PJRT_Api: `slots` goes on for as long as `struct_size` says.
struct Api {
  size_t struct_size;
  ExtensionBase* extension_start;
  ApiVersion version;
  Slot slots[1];
};

inline constexpr int32_t kMajorVersion = 0;

// Every call takes one struct of arguments, which begins like this, and returns an error or null. `kSlot` of such a
// struct is the index of its call.
struct Head {
  size_t struct_size;
  ExtensionBase* extension_start;
};

enum ErrorCode : int32_t { kUnknown = 2, kNotFound = 5, kFailedPrecondition = 9, kUnimplemented = 12 };

struct ErrorDestroyArgs : Head {  // returns nothing
  static constexpr size_t kSlot = 0;
  Error* error;
};

struct ErrorMessageArgs : Head {  // returns nothing
  static constexpr size_t kSlot = 1;
  const Error* error;
  const char* message;
  size_t message_size;
};

struct ErrorGetCodeArgs : Head {
  static constexpr size_t kSlot = 2;
  const Error* error;
  int32_t code;
};

struct PluginInitializeArgs : Head {
  static constexpr size_t kSlot = 3;
};

struct PluginAttributesArgs : Head {
  static constexpr size_t kSlot = 4;
  const NamedValue* attributes;
  size_t num_attributes;
};

struct EventDestroyArgs : Head {
  static constexpr size_t kSlot = 5;
  Event* event;
};

struct EventIsReadyArgs : Head {
  static constexpr size_t kSlot = 6;
  Event* event;
  bool is_ready;
};

struct EventAwaitArgs : Head {
  static constexpr size_t kSlot = 8;
  Event* event;
};

struct ClientCreateArgs : Head {
  static constexpr size_t kSlot = 10;
  const NamedValue* create_options;
  size_t num_options;
  void* key_value_callbacks[4];
  Client* client;
};

struct ClientDestroyArgs : Head {
  static constexpr size_t kSlot = 11;
  Client* client;
};

struct ClientAddressableDevicesArgs : Head {
  static constexpr size_t kSlot = 16;
  Client* client;
  Device* const* addressable_devices;
  size_t num_addressable_devices;
};

struct Program {
  size_t struct_size;
  ExtensionBase* extension_start;
  const char* code;
  size_t code_size;
  const char* format;
  size_t format_size;
};

struct ClientCompileArgs : Head {
  static constexpr size_t kSlot = 20;
  Client* client;
  const Program* program;
  const char* compile_options;
  size_t compile_options_size;
  LoadedExecutable* executable;
};

enum HostBufferSemantics : int32_t { kImmutableOnlyDuringCall = 0 };
enum BufferType : int32_t { kBytes = 6 };  // PJRT_Buffer_Type_U8

struct ClientBufferFromHostBufferArgs : Head {
  static constexpr size_t kSlot = 22;
  Client* client;
  const void* data;
  BufferType type;
  const int64_t* dims;
  size_t num_dims;
  const int64_t* byte_strides;
  size_t num_byte_strides;
  HostBufferSemantics host_buffer_semantics;
  Device* device;
  Memory* memory;
  void* device_layout;
  Event* done_with_host_buffer;
  Buffer* buffer;
};

struct DeviceDescriptionIdArgs : Head {
  static constexpr size_t kSlot = 23;
  DeviceDescription* device_description;
  int32_t id;
};

struct DeviceGetDescriptionArgs : Head {
  static constexpr size_t kSlot = 29;
  Device* device;
  DeviceDescription* device_description;
};

// Bytes; each figure but the first says behind it whether it is known.
struct DeviceMemoryStatsArgs : Head {
  static constexpr size_t kSlot = 34;
  struct Figure {
    int64_t value;
    bool is_set;
  };
  Device* device;
  int64_t bytes_in_use;
  Figure peak_bytes_in_use;
  Figure num_allocs;
  Figure largest_alloc_size;
  Figure bytes_limit;
  Figure bytes_reserved;
  Figure peak_bytes_reserved;
  Figure bytes_reservable_limit;
  Figure largest_free_block_bytes;
  Figure pool_bytes;
  Figure peak_pool_bytes;
};

struct MemoryAddressableByDevicesArgs : Head {
  static constexpr size_t kSlot = 39;
  Memory* memory;
  Device* const* devices;
  size_t num_devices;
};

struct ExecutableDestroyArgs : Head {
  static constexpr size_t kSlot = 40;
  Executable* executable;
};

struct ExecutableNumOutputsArgs : Head {
  static constexpr size_t kSlot = 44;
  Executable* executable;
  size_t num_outputs;
};

struct LoadedExecutableDestroyArgs : Head {
  static constexpr size_t kSlot = 50;
  LoadedExecutable* executable;
};

struct LoadedExecutableGetExecutableArgs : Head {
  static constexpr size_t kSlot = 51;
  LoadedExecutable* loaded_executable;
  Executable* executable;
};

struct LoadedExecutableAddressableDevicesArgs : Head {
  static constexpr size_t kSlot = 52;
  LoadedExecutable* executable;
  Device* const* addressable_devices;
  size_t num_addressable_devices;
};

struct LoadedExecutableExecuteArgs : Head {
  static constexpr size_t kSlot = 55;
  LoadedExecutable* executable;
  void* options;
  Buffer* const* const* argument_lists;
  size_t num_devices;
  size_t num_args;
  Buffer** const* output_lists;
  Event** device_complete_events;
  Device* execute_device;
};

struct ExecutableDeserializeAndLoadArgs : Head {
  static constexpr size_t kSlot = 56;
  Client* client;
  const char* serialized_executable;
  size_t serialized_executable_size;
  LoadedExecutable* loaded_executable;
};

struct BufferDestroyArgs : Head {
  static constexpr size_t kSlot = 58;
  Buffer* buffer;
};

struct BufferCopyToDeviceArgs : Head {
  static constexpr size_t kSlot = 69;
  Buffer* buffer;
  Device* dst_device;
  Buffer* dst_buffer;
};

struct BufferReadyEventArgs : Head {
  static constexpr size_t kSlot = 72;
  Buffer* buffer;
  Event* event;
};

struct BufferCopyToMemoryArgs : Head {
  static constexpr size_t kSlot = 92;
  Buffer* buffer;
  Memory* dst_memory;
  Buffer* dst_buffer;
};

struct ExecutableFingerprintArgs : Head {
  static constexpr size_t kSlot = 94;
  Executable* executable;
  const char* executable_fingerprint;
  size_t executable_fingerprint_size;
};

struct ClientCreateUninitializedBufferArgs : Head {
  static constexpr size_t kSlot = 112;
  Client* client;
  const int64_t* shape_dims;
  size_t shape_num_dims;
  BufferType shape_element_type;
  void* shape_layout;
  Device* device;
  Memory* memory;
  Buffer* buffer;
};

struct ClientLoadArgs : Head {
  static constexpr size_t kSlot = 129;
  Client* client;
  Executable* executable;
  const char* compile_options;
  size_t compile_options_size;
  LoadedExecutable* loaded_executable;
};

struct DeviceClearMemoryStatsArgs : Head {
  static constexpr size_t kSlot = 135;
  Device* device;
};

}  // namespace stalloc::abi
