// Prints what abi.h declares: "slot STRUCT INDEX", "field STRUCT NAME OFFSET" and "size STRUCT BYTES".
#include <cstdio>

#include "abi.h"

using namespace stalloc::abi;

#define SLOT(type, name) std::printf("slot %s %zu\nsize %s %zu\n", name, type::kSlot, name, sizeof(type))
#define FIELD(type, name, field) std::printf("field %s %s %zu\n", name, #field, offsetof(type, field))

int main() {
  std::printf("field PJRT_Api extension_start %zu\n", offsetof(Api, extension_start));
  std::printf("field PJRT_Api PJRT_Error_Destroy %zu\n", offsetof(Api, slots));
  std::printf("field PJRT_Api_Version major_version %zu\n", offsetof(ApiVersion, major_version));
  std::printf("field PJRT_Api_Version minor_version %zu\n", offsetof(ApiVersion, minor_version));
  std::printf("field PJRT_Extension_Base next %zu\n", offsetof(ExtensionBase, next));
  std::printf("field PJRT_Program code %zu\n", offsetof(Program, code));
  std::printf("field PJRT_Program format_size %zu\n", offsetof(Program, format_size));
  SLOT(ErrorDestroyArgs, "PJRT_Error_Destroy");
  FIELD(ErrorDestroyArgs, "PJRT_Error_Destroy_Args", error);
  SLOT(ErrorMessageArgs, "PJRT_Error_Message");
  FIELD(ErrorMessageArgs, "PJRT_Error_Message_Args", error);
  FIELD(ErrorMessageArgs, "PJRT_Error_Message_Args", message);
  FIELD(ErrorMessageArgs, "PJRT_Error_Message_Args", message_size);
  SLOT(ErrorGetCodeArgs, "PJRT_Error_GetCode");
  FIELD(ErrorGetCodeArgs, "PJRT_Error_GetCode_Args", code);
  SLOT(PluginInitializeArgs, "PJRT_Plugin_Initialize");
  SLOT(PluginAttributesArgs, "PJRT_Plugin_Attributes");
  FIELD(PluginAttributesArgs, "PJRT_Plugin_Attributes_Args", attributes);
  FIELD(PluginAttributesArgs, "PJRT_Plugin_Attributes_Args", num_attributes);
  SLOT(EventDestroyArgs, "PJRT_Event_Destroy");
  FIELD(EventDestroyArgs, "PJRT_Event_Destroy_Args", event);
  SLOT(EventIsReadyArgs, "PJRT_Event_IsReady");
  FIELD(EventIsReadyArgs, "PJRT_Event_IsReady_Args", event);
  FIELD(EventIsReadyArgs, "PJRT_Event_IsReady_Args", is_ready);
  SLOT(ExecutableNumOutputsArgs, "PJRT_Executable_NumOutputs");
  FIELD(ExecutableNumOutputsArgs, "PJRT_Executable_NumOutputs_Args", num_outputs);
  SLOT(BufferReadyEventArgs, "PJRT_Buffer_ReadyEvent");
  FIELD(BufferReadyEventArgs, "PJRT_Buffer_ReadyEvent_Args", buffer);
  FIELD(BufferReadyEventArgs, "PJRT_Buffer_ReadyEvent_Args", event);
  SLOT(EventAwaitArgs, "PJRT_Event_Await");
  FIELD(EventAwaitArgs, "PJRT_Event_Await_Args", event);
  SLOT(ClientCreateArgs, "PJRT_Client_Create");
  FIELD(ClientCreateArgs, "PJRT_Client_Create_Args", create_options);
  FIELD(ClientCreateArgs, "PJRT_Client_Create_Args", num_options);
  FIELD(ClientCreateArgs, "PJRT_Client_Create_Args", client);
  SLOT(ClientDestroyArgs, "PJRT_Client_Destroy");
  FIELD(ClientDestroyArgs, "PJRT_Client_Destroy_Args", client);
  SLOT(ClientAddressableDevicesArgs, "PJRT_Client_AddressableDevices");
  FIELD(ClientAddressableDevicesArgs, "PJRT_Client_AddressableDevices_Args", addressable_devices);
  FIELD(ClientAddressableDevicesArgs, "PJRT_Client_AddressableDevices_Args", num_addressable_devices);
  SLOT(ClientCompileArgs, "PJRT_Client_Compile");
  FIELD(ClientCompileArgs, "PJRT_Client_Compile_Args", program);
  FIELD(ClientCompileArgs, "PJRT_Client_Compile_Args", compile_options_size);
  FIELD(ClientCompileArgs, "PJRT_Client_Compile_Args", executable);
  SLOT(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer");
  FIELD(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer_Args", data);
  FIELD(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer_Args", type);
  FIELD(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer_Args", dims);
  FIELD(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer_Args", host_buffer_semantics);
  FIELD(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer_Args", device);
  FIELD(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer_Args", memory);
  FIELD(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer_Args", done_with_host_buffer);
  FIELD(ClientBufferFromHostBufferArgs, "PJRT_Client_BufferFromHostBuffer_Args", buffer);
  SLOT(DeviceMemoryStatsArgs, "PJRT_Device_MemoryStats");
  FIELD(DeviceMemoryStatsArgs, "PJRT_Device_MemoryStats_Args", device);
  FIELD(DeviceMemoryStatsArgs, "PJRT_Device_MemoryStats_Args", bytes_in_use);
  FIELD(DeviceMemoryStatsArgs, "PJRT_Device_MemoryStats_Args", peak_bytes_in_use);
  FIELD(DeviceMemoryStatsArgs, "PJRT_Device_MemoryStats_Args", num_allocs);
  FIELD(DeviceMemoryStatsArgs, "PJRT_Device_MemoryStats_Args", bytes_limit);
  FIELD(DeviceMemoryStatsArgs, "PJRT_Device_MemoryStats_Args", peak_pool_bytes);
  SLOT(MemoryAddressableByDevicesArgs, "PJRT_Memory_AddressableByDevices");
  FIELD(MemoryAddressableByDevicesArgs, "PJRT_Memory_AddressableByDevices_Args", memory);
  FIELD(MemoryAddressableByDevicesArgs, "PJRT_Memory_AddressableByDevices_Args", devices);
  FIELD(MemoryAddressableByDevicesArgs, "PJRT_Memory_AddressableByDevices_Args", num_devices);
  SLOT(BufferCopyToMemoryArgs, "PJRT_Buffer_CopyToMemory");
  FIELD(BufferCopyToMemoryArgs, "PJRT_Buffer_CopyToMemory_Args", dst_memory);
  SLOT(ClientCreateUninitializedBufferArgs, "PJRT_Client_CreateUninitializedBuffer");
  FIELD(ClientCreateUninitializedBufferArgs, "PJRT_Client_CreateUninitializedBuffer_Args", device);
  FIELD(ClientCreateUninitializedBufferArgs, "PJRT_Client_CreateUninitializedBuffer_Args", memory);
  SLOT(ExecutableDestroyArgs, "PJRT_Executable_Destroy");
  FIELD(ExecutableDestroyArgs, "PJRT_Executable_Destroy_Args", executable);
  SLOT(LoadedExecutableDestroyArgs, "PJRT_LoadedExecutable_Destroy");
  FIELD(LoadedExecutableDestroyArgs, "PJRT_LoadedExecutable_Destroy_Args", executable);
  SLOT(LoadedExecutableGetExecutableArgs, "PJRT_LoadedExecutable_GetExecutable");
  FIELD(LoadedExecutableGetExecutableArgs, "PJRT_LoadedExecutable_GetExecutable_Args", loaded_executable);
  FIELD(LoadedExecutableGetExecutableArgs, "PJRT_LoadedExecutable_GetExecutable_Args", executable);
  SLOT(LoadedExecutableAddressableDevicesArgs, "PJRT_LoadedExecutable_AddressableDevices");
  FIELD(LoadedExecutableAddressableDevicesArgs, "PJRT_LoadedExecutable_AddressableDevices_Args", addressable_devices);
  FIELD(LoadedExecutableAddressableDevicesArgs, "PJRT_LoadedExecutable_AddressableDevices_Args",
        num_addressable_devices);
  SLOT(LoadedExecutableExecuteArgs, "PJRT_LoadedExecutable_Execute");
  FIELD(LoadedExecutableExecuteArgs, "PJRT_LoadedExecutable_Execute_Args", executable);
  FIELD(LoadedExecutableExecuteArgs, "PJRT_LoadedExecutable_Execute_Args", num_devices);
  FIELD(LoadedExecutableExecuteArgs, "PJRT_LoadedExecutable_Execute_Args", output_lists);
  FIELD(LoadedExecutableExecuteArgs, "PJRT_LoadedExecutable_Execute_Args", execute_device);
  SLOT(ExecutableDeserializeAndLoadArgs, "PJRT_Executable_DeserializeAndLoad");
  FIELD(ExecutableDeserializeAndLoadArgs, "PJRT_Executable_DeserializeAndLoad_Args", serialized_executable);
  FIELD(ExecutableDeserializeAndLoadArgs, "PJRT_Executable_DeserializeAndLoad_Args", serialized_executable_size);
  FIELD(ExecutableDeserializeAndLoadArgs, "PJRT_Executable_DeserializeAndLoad_Args", loaded_executable);
  SLOT(BufferDestroyArgs, "PJRT_Buffer_Destroy");
  FIELD(BufferDestroyArgs, "PJRT_Buffer_Destroy_Args", buffer);
  SLOT(BufferCopyToDeviceArgs, "PJRT_Buffer_CopyToDevice");
  FIELD(BufferCopyToDeviceArgs, "PJRT_Buffer_CopyToDevice_Args", dst_device);
  SLOT(ExecutableFingerprintArgs, "PJRT_Executable_Fingerprint");
  FIELD(ExecutableFingerprintArgs, "PJRT_Executable_Fingerprint_Args", executable_fingerprint);
  FIELD(ExecutableFingerprintArgs, "PJRT_Executable_Fingerprint_Args", executable_fingerprint_size);
  SLOT(ClientLoadArgs, "PJRT_Client_Load");
  FIELD(ClientLoadArgs, "PJRT_Client_Load_Args", executable);
  FIELD(ClientLoadArgs, "PJRT_Client_Load_Args", loaded_executable);
  SLOT(DeviceClearMemoryStatsArgs, "PJRT_Device_ClearMemoryStats");
  FIELD(DeviceClearMemoryStatsArgs, "PJRT_Device_ClearMemoryStats_Args", device);
}
