// The part of the WebGPU C interface that this backend uses, declared here because no package ships the header: names,
// order and sizes are those of webgpu.h of May 2025 as Dawn exports it. Goals: one place that knows the binary layout,
// checked by static_asserts where a compiler can. Not a goal: a whole binding. Rejected: linking the library, because a
// program that runs on the CPU alone must neither need nor touch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace candor::webgpu::api {

struct InstanceImpl;
struct AdapterImpl;
struct DeviceImpl;
struct QueueImpl;
struct BufferImpl;
struct ShaderModuleImpl;
struct BindGroupLayoutImpl;
struct PipelineLayoutImpl;
struct BindGroupImpl;
struct ComputePipelineImpl;
struct CommandEncoderImpl;
struct ComputePassEncoderImpl;
struct CommandBufferImpl;
struct QuerySetImpl;

using Bool = std::uint32_t;
using Flags = std::uint64_t;

inline constexpr std::uint32_t kUndefinedU32 = 0xffff'ffff;
inline constexpr std::uint64_t kUndefinedU64 = 0xffff'ffff'ffff'ffff;
inline constexpr std::size_t kWholeString = SIZE_MAX;  ///< StringView.length of a text that ends with a 0

struct StringView {
  const char* data = nullptr;
  std::size_t length = kWholeString;
};

[[nodiscard]] inline StringView view(std::string_view text) {
  return {text.data(), text.size()};
}
[[nodiscard]] inline std::string text(StringView view) {
  if (view.data == nullptr) return {};
  return view.length == kWholeString ? std::string(view.data) : std::string(view.data, view.length);
}

struct Chained {
  Chained* next = nullptr;
  std::uint32_t type = 0;
};

struct Future {
  std::uint64_t id = 0;
};
struct FutureWaitInfo {
  Future future;
  Bool completed = 0;
};

enum class CallbackMode : std::uint32_t { wait_any_only = 1, allow_process_events = 2, allow_spontaneous = 3 };
enum class BackendType : std::uint32_t { undefined, null, webgpu, d3d11, d3d12, metal, vulkan, opengl, opengles };
enum class AdapterType : std::uint32_t { discrete = 1, integrated = 2, cpu = 3, unknown = 4 };
enum class PowerPreference : std::uint32_t { undefined, low_power, high_performance };
enum class ErrorType : std::uint32_t { none = 1, validation = 2, out_of_memory = 3, internal = 4, unknown = 5 };
enum class BufferBindingType : std::uint32_t { not_used, undefined, uniform, storage, read_only_storage };
enum class Status : std::uint32_t { success = 1, error = 2 };
inline constexpr std::uint32_t kSuccess = 1;  ///< of every callback's status

inline constexpr std::uint32_t kFeatureTimestampQuery = 0x3;
inline constexpr std::uint32_t kFeatureShaderF16 = 0xa;
inline constexpr std::uint32_t kFeatureSubgroups = 0x11;

inline constexpr std::uint32_t kTypeShaderSourceWgsl = 0x2;
inline constexpr std::uint32_t kTypeDawnToggles = 0x0005'000a;

inline constexpr Flags kUsageMapRead = 0x1;
inline constexpr Flags kUsageMapWrite = 0x2;
inline constexpr Flags kUsageCopySource = 0x4;
inline constexpr Flags kUsageCopyTarget = 0x8;
inline constexpr Flags kUsageUniform = 0x40;
inline constexpr Flags kUsageStorage = 0x80;
inline constexpr Flags kUsageQueryResolve = 0x200;
inline constexpr Flags kMapRead = 0x1;
inline constexpr Flags kStageCompute = 0x4;

/// Settings of Dawn, by name; chained to the adapter's options.
struct DawnToggles {
  Chained chain{nullptr, kTypeDawnToggles};
  std::size_t enabled_count = 0;
  const char* const* enabled = nullptr;
  std::size_t disabled_count = 0;
  const char* const* disabled = nullptr;
};

struct InstanceCapabilities {
  Chained* next = nullptr;
  Bool timed_wait_any_enable = 0;
  std::size_t timed_wait_any_max_count = 0;
};
struct InstanceDescriptor {
  Chained* next = nullptr;
  InstanceCapabilities capabilities;
};

struct RequestAdapterOptions {
  Chained* next = nullptr;
  std::uint32_t feature_level = 2;  ///< core
  PowerPreference power_preference = PowerPreference::undefined;
  Bool force_fallback_adapter = 0;
  BackendType backend_type = BackendType::undefined;
  void* compatible_surface = nullptr;
};

/// A callback and the two pointers it gets. `Callback` is a function pointer type.
template <typename Callback>
struct CallbackInfo {
  Chained* next = nullptr;
  CallbackMode mode = CallbackMode::wait_any_only;
  Callback callback = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};

using AdapterCallback = void (*)(std::uint32_t status, AdapterImpl*, StringView message, void*, void*);
using DeviceCallback = void (*)(std::uint32_t status, DeviceImpl*, StringView message, void*, void*);
using DeviceLostCallback = void (*)(DeviceImpl* const*, std::uint32_t reason, StringView message, void*, void*);
using ErrorCallback = void (*)(DeviceImpl* const*, ErrorType, StringView message, void*, void*);
using StatusCallback = void (*)(std::uint32_t status, StringView message, void*, void*);
using WorkDoneCallback = void (*)(std::uint32_t status, void*, void*);

struct ErrorCallbackInfo {
  Chained* next = nullptr;
  ErrorCallback callback = nullptr;
  void* userdata1 = nullptr;
  void* userdata2 = nullptr;
};

struct Limits {
  Chained* next = nullptr;
  std::uint32_t max_texture_dimension_1d = kUndefinedU32;
  std::uint32_t max_texture_dimension_2d = kUndefinedU32;
  std::uint32_t max_texture_dimension_3d = kUndefinedU32;
  std::uint32_t max_texture_array_layers = kUndefinedU32;
  std::uint32_t max_bind_groups = kUndefinedU32;
  std::uint32_t max_bind_groups_plus_vertex_buffers = kUndefinedU32;
  std::uint32_t max_bindings_per_bind_group = kUndefinedU32;
  std::uint32_t max_dynamic_uniform_buffers = kUndefinedU32;
  std::uint32_t max_dynamic_storage_buffers = kUndefinedU32;
  std::uint32_t max_sampled_textures = kUndefinedU32;
  std::uint32_t max_samplers = kUndefinedU32;
  std::uint32_t max_storage_buffers = kUndefinedU32;  ///< a shader stage
  std::uint32_t max_storage_textures = kUndefinedU32;
  std::uint32_t max_uniform_buffers = kUndefinedU32;
  std::uint64_t max_uniform_binding_bytes = kUndefinedU64;
  std::uint64_t max_storage_binding_bytes = kUndefinedU64;
  std::uint32_t min_uniform_offset_alignment = kUndefinedU32;
  std::uint32_t min_storage_offset_alignment = kUndefinedU32;
  std::uint32_t max_vertex_buffers = kUndefinedU32;
  std::uint64_t max_buffer_bytes = kUndefinedU64;
  std::uint32_t max_vertex_attributes = kUndefinedU32;
  std::uint32_t max_vertex_stride = kUndefinedU32;
  std::uint32_t max_inter_stage_variables = kUndefinedU32;
  std::uint32_t max_color_attachments = kUndefinedU32;
  std::uint32_t max_color_attachment_bytes = kUndefinedU32;
  std::uint32_t max_workgroup_bytes = kUndefinedU32;
  std::uint32_t max_workgroup_invocations = kUndefinedU32;
  std::uint32_t max_workgroup_size_x = kUndefinedU32;
  std::uint32_t max_workgroup_size_y = kUndefinedU32;
  std::uint32_t max_workgroup_size_z = kUndefinedU32;
  std::uint32_t max_workgroups = kUndefinedU32;  ///< a dimension
  std::uint32_t max_immediate_bytes = kUndefinedU32;
  std::uint32_t max_storage_buffers_in_vertex_stage = kUndefinedU32;
  std::uint32_t max_storage_textures_in_vertex_stage = kUndefinedU32;
  std::uint32_t max_storage_buffers_in_fragment_stage = kUndefinedU32;
  std::uint32_t max_storage_textures_in_fragment_stage = kUndefinedU32;
};

struct AdapterInfo {
  Chained* next = nullptr;
  StringView vendor, architecture, device, description;
  BackendType backend_type = BackendType::undefined;
  AdapterType adapter_type = AdapterType::unknown;
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t subgroup_min_size = 0;
  std::uint32_t subgroup_max_size = 0;
};

struct SupportedFeatures {
  std::size_t count = 0;
  const std::uint32_t* features = nullptr;
};

struct QueueDescriptor {
  Chained* next = nullptr;
  StringView label;
};
struct DeviceDescriptor {
  Chained* next = nullptr;
  StringView label;
  std::size_t feature_count = 0;
  const std::uint32_t* features = nullptr;
  const Limits* limits = nullptr;
  QueueDescriptor queue;
  CallbackInfo<DeviceLostCallback> lost;
  ErrorCallbackInfo error;
};

struct BufferDescriptor {
  Chained* next = nullptr;
  StringView label;
  Flags usage = 0;
  std::uint64_t size = 0;
  Bool mapped_at_creation = 0;
};

struct BufferBindingLayout {
  Chained* next = nullptr;
  BufferBindingType type = BufferBindingType::not_used;
  Bool has_dynamic_offset = 0;
  std::uint64_t min_binding_size = 0;
};
struct UnusedSamplerLayout {
  Chained* next = nullptr;
  std::uint32_t type = 0;
};
struct UnusedTextureLayout {
  Chained* next = nullptr;
  std::uint32_t sample_type = 0, dimension = 0, multisampled = 0;
};
struct BindGroupLayoutEntry {
  Chained* next = nullptr;
  std::uint32_t binding = 0;
  Flags visibility = 0;
  std::uint32_t array_size = 0;
  BufferBindingLayout buffer;
  UnusedSamplerLayout sampler;
  UnusedTextureLayout texture, storage_texture;
};
struct BindGroupLayoutDescriptor {
  Chained* next = nullptr;
  StringView label;
  std::size_t count = 0;
  const BindGroupLayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor {
  Chained* next = nullptr;
  StringView label;
  std::size_t count = 0;
  BindGroupLayoutImpl* const* layouts = nullptr;
  std::uint32_t immediate_bytes = 0;
};
struct BindGroupEntry {
  Chained* next = nullptr;
  std::uint32_t binding = 0;
  BufferImpl* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size = kUndefinedU64;
  void* sampler = nullptr;
  void* texture_view = nullptr;
};
struct BindGroupDescriptor {
  Chained* next = nullptr;
  StringView label;
  BindGroupLayoutImpl* layout = nullptr;
  std::size_t count = 0;
  const BindGroupEntry* entries = nullptr;
};

struct ShaderSourceWgsl {
  Chained chain{nullptr, kTypeShaderSourceWgsl};
  StringView code;
};
struct ShaderModuleDescriptor {
  Chained* next = nullptr;
  StringView label;
};
struct ConstantEntry {
  Chained* next = nullptr;
  StringView key;
  double value = 0;
};
struct ComputeState {
  Chained* next = nullptr;
  ShaderModuleImpl* module = nullptr;
  StringView entry;
  std::size_t constant_count = 0;
  const ConstantEntry* constants = nullptr;
};
struct ComputePipelineDescriptor {
  Chained* next = nullptr;
  StringView label;
  PipelineLayoutImpl* layout = nullptr;
  ComputeState compute;
};

struct QuerySetDescriptor {
  Chained* next = nullptr;
  StringView label;
  std::uint32_t type = 2;  ///< timestamp
  std::uint32_t count = 0;
};
struct PassTimestampWrites {
  Chained* next = nullptr;
  QuerySetImpl* queries = nullptr;
  std::uint32_t begin = kUndefinedU32;
  std::uint32_t end = kUndefinedU32;
};
struct ComputePassDescriptor {
  Chained* next = nullptr;
  StringView label;
  const PassTimestampWrites* timestamps = nullptr;
};

static_assert(sizeof(void*) == 8 && sizeof(std::size_t) == 8, "the layouts here are those of 64-bit systems");
static_assert(sizeof(StringView) == 16 && sizeof(Chained) == 16 && sizeof(FutureWaitInfo) == 16);
static_assert(sizeof(DawnToggles) == 48);
static_assert(sizeof(InstanceCapabilities) == 24 && sizeof(InstanceDescriptor) == 32);
static_assert(sizeof(RequestAdapterOptions) == 32);
static_assert(sizeof(CallbackInfo<StatusCallback>) == 40 && sizeof(ErrorCallbackInfo) == 32);
static_assert(sizeof(Limits) == 168 && offsetof(Limits, max_uniform_binding_bytes) == 64 &&
              offsetof(Limits, max_buffer_bytes) == 96 && offsetof(Limits, max_workgroup_bytes) == 124);
static_assert(sizeof(AdapterInfo) == 96 && offsetof(AdapterInfo, backend_type) == 72);
static_assert(sizeof(DeviceDescriptor) == 144 && offsetof(DeviceDescriptor, lost) == 72);
static_assert(sizeof(BufferDescriptor) == 48);
static_assert(sizeof(BufferBindingLayout) == 24 && sizeof(BindGroupLayoutEntry) == 120 &&
              offsetof(BindGroupLayoutEntry, buffer) == 32);
static_assert(sizeof(BindGroupLayoutDescriptor) == 40 && sizeof(PipelineLayoutDescriptor) == 48);
static_assert(sizeof(BindGroupEntry) == 56 && sizeof(BindGroupDescriptor) == 48);
static_assert(sizeof(ShaderSourceWgsl) == 32 && sizeof(ConstantEntry) == 32 && sizeof(ComputeState) == 48);
static_assert(sizeof(ComputePipelineDescriptor) == 80);
static_assert(sizeof(QuerySetDescriptor) == 32 && sizeof(PassTimestampWrites) == 24);

/// The functions used, by their names without the prefix "wgpu".
struct Functions {
  InstanceImpl* (*CreateInstance)(const InstanceDescriptor*);
  void (*InstanceRelease)(InstanceImpl*);
  Future (*InstanceRequestAdapter)(InstanceImpl*, const RequestAdapterOptions*, CallbackInfo<AdapterCallback>);
  std::uint32_t (*InstanceWaitAny)(InstanceImpl*, std::size_t, FutureWaitInfo*, std::uint64_t timeout);
  void (*InstanceProcessEvents)(InstanceImpl*);
  Status (*AdapterGetInfo)(AdapterImpl*, AdapterInfo*);
  void (*AdapterInfoFreeMembers)(AdapterInfo);
  Status (*AdapterGetLimits)(AdapterImpl*, Limits*);
  void (*AdapterGetFeatures)(AdapterImpl*, SupportedFeatures*);
  void (*SupportedFeaturesFreeMembers)(SupportedFeatures);
  Future (*AdapterRequestDevice)(AdapterImpl*, const DeviceDescriptor*, CallbackInfo<DeviceCallback>);
  void (*AdapterRelease)(AdapterImpl*);
  QueueImpl* (*DeviceGetQueue)(DeviceImpl*);
  BufferImpl* (*DeviceCreateBuffer)(DeviceImpl*, const BufferDescriptor*);
  ShaderModuleImpl* (*DeviceCreateShaderModule)(DeviceImpl*, const ShaderModuleDescriptor*);
  BindGroupLayoutImpl* (*DeviceCreateBindGroupLayout)(DeviceImpl*, const BindGroupLayoutDescriptor*);
  PipelineLayoutImpl* (*DeviceCreatePipelineLayout)(DeviceImpl*, const PipelineLayoutDescriptor*);
  BindGroupImpl* (*DeviceCreateBindGroup)(DeviceImpl*, const BindGroupDescriptor*);
  ComputePipelineImpl* (*DeviceCreateComputePipeline)(DeviceImpl*, const ComputePipelineDescriptor*);
  CommandEncoderImpl* (*DeviceCreateCommandEncoder)(DeviceImpl*, const void*);
  QuerySetImpl* (*DeviceCreateQuerySet)(DeviceImpl*, const QuerySetDescriptor*);
  void (*DeviceDestroy)(DeviceImpl*);
  void (*DeviceRelease)(DeviceImpl*);
  void (*QueueWriteBuffer)(QueueImpl*, BufferImpl*, std::uint64_t offset, const void*, std::size_t);
  void (*QueueSubmit)(QueueImpl*, std::size_t, CommandBufferImpl* const*);
  Future (*QueueOnSubmittedWorkDone)(QueueImpl*, CallbackInfo<WorkDoneCallback>);
  void (*QueueRelease)(QueueImpl*);
  Future (*BufferMapAsync)(BufferImpl*, Flags mode, std::size_t offset, std::size_t size, CallbackInfo<StatusCallback>);
  const void* (*BufferGetConstMappedRange)(BufferImpl*, std::size_t offset, std::size_t size);
  void (*BufferUnmap)(BufferImpl*);
  void (*BufferDestroy)(BufferImpl*);
  void (*BufferRelease)(BufferImpl*);
  void (*ShaderModuleRelease)(ShaderModuleImpl*);
  void (*BindGroupLayoutRelease)(BindGroupLayoutImpl*);
  void (*PipelineLayoutRelease)(PipelineLayoutImpl*);
  void (*BindGroupRelease)(BindGroupImpl*);
  void (*ComputePipelineRelease)(ComputePipelineImpl*);
  void (*QuerySetRelease)(QuerySetImpl*);
  ComputePassEncoderImpl* (*CommandEncoderBeginComputePass)(CommandEncoderImpl*, const ComputePassDescriptor*);
  void (*CommandEncoderCopyBufferToBuffer)(CommandEncoderImpl*, BufferImpl* from, std::uint64_t, BufferImpl* to,
                                           std::uint64_t, std::uint64_t size);
  void (*CommandEncoderClearBuffer)(CommandEncoderImpl*, BufferImpl*, std::uint64_t offset, std::uint64_t size);
  void (*CommandEncoderResolveQuerySet)(CommandEncoderImpl*, QuerySetImpl*, std::uint32_t first, std::uint32_t count,
                                        BufferImpl*, std::uint64_t offset);
  CommandBufferImpl* (*CommandEncoderFinish)(CommandEncoderImpl*, const void*);
  void (*CommandEncoderRelease)(CommandEncoderImpl*);
  void (*CommandBufferRelease)(CommandBufferImpl*);
  void (*ComputePassEncoderSetPipeline)(ComputePassEncoderImpl*, ComputePipelineImpl*);
  void (*ComputePassEncoderSetBindGroup)(ComputePassEncoderImpl*, std::uint32_t index, BindGroupImpl*, std::size_t,
                                         const std::uint32_t* dynamic_offsets);
  void (*ComputePassEncoderDispatchWorkgroups)(ComputePassEncoderImpl*, std::uint32_t x, std::uint32_t y,
                                               std::uint32_t z);
  void (*ComputePassEncoderEnd)(ComputePassEncoderImpl*);
  void (*ComputePassEncoderRelease)(ComputePassEncoderImpl*);
};

}  // namespace candor::webgpu::api
