#include "backends/webgpu/adapter.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/error.h"

namespace candor::webgpu {
namespace {

constexpr std::array<std::pair<std::uint32_t, std::string_view>, 3> kFeatures{
    {{api::kFeatureTimestampQuery, "timestamp-query"},
     {api::kFeatureShaderF16, "shader-f16"},
     {api::kFeatureSubgroups, "subgroups"}}};

std::string feature_name(std::uint32_t number) {
  for (const auto& [known, name] : kFeatures)
    if (known == number) return std::string(name);
  return fmt::format("{:#x}", number);
}

std::string_view backend_name(api::BackendType type) {
  constexpr std::array<std::string_view, 9> kNames{"undefined", "null",   "webgpu", "d3d11",   "d3d12",
                                                   "metal",     "vulkan", "opengl", "opengles"};
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string_view type_name(api::AdapterType type) {
  switch (type) {
    case api::AdapterType::discrete:
      return "discrete";
    case api::AdapterType::integrated:
      return "integrated";
    case api::AdapterType::cpu:
      return "cpu";
    case api::AdapterType::unknown:
      break;
  }
  return "unknown";
}

#if defined(__APPLE__)
constexpr api::BackendType kBackend = api::BackendType::metal;
#elif defined(_WIN32)
constexpr api::BackendType kBackend = api::BackendType::d3d12;
#else
constexpr api::BackendType kBackend = api::BackendType::vulkan;
#endif

api::AdapterImpl* request(const Library& library, api::PowerPreference power, bool fallback) {
  api::RequestAdapterOptions options;
  options.backend_type = kBackend;
  options.power_preference = power;
  options.force_fallback_adapter = fallback ? 1 : 0;
  // Times are rounded to 0.1 ms otherwise.
  static constexpr std::array<const char*, 1> kDisabled{"timestamp_quantization"};
  api::DawnToggles toggles;
  toggles.disabled_count = kDisabled.size();
  toggles.disabled = kDisabled.data();
  options.next = &toggles.chain;
  api::AdapterImpl* found = nullptr;
  api::CallbackInfo<api::AdapterCallback> callback;
  callback.callback = [](std::uint32_t status, api::AdapterImpl* adapter, api::StringView, void* out, void*) {
    if (status == api::kSuccess) *static_cast<api::AdapterImpl**>(out) = adapter;
  };
  callback.userdata1 = &found;
  library.wait(library.functions().InstanceRequestAdapter(library.instance(), &options, callback), "an adapter");
  return found;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string names(const std::vector<Adapter>& adapters) {
  std::vector<std::string> list;
  for (const Adapter& adapter : adapters) list.push_back(fmt::format("\"{}\"", printable(adapter.name())));
  return fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace

Adapter::Adapter(std::shared_ptr<const Library> library, api::AdapterImpl* handle)
    : library_(std::move(library)), handle_(handle) {
  const api::Functions& f = library_->functions();
  api::AdapterInfo info;
  if (f.AdapterGetInfo(handle_, &info) == api::Status::success) {
    name_ = api::text(info.device);
    vendor_ = api::text(info.vendor);
    architecture_ = api::text(info.architecture);
    driver_ = api::text(info.description);
    backend_ = info.backend_type;
    type_ = info.adapter_type;
    vendor_id_ = info.vendor_id;
    device_id_ = info.device_id;
    subgroup_min_ = info.subgroup_min_size;
    subgroup_max_ = info.subgroup_max_size;
    f.AdapterInfoFreeMembers(info);
  }
  if (f.AdapterGetLimits(handle_, &limits_) != api::Status::success)
    fail(ErrorCode::device, "adapter \"{}\" does not tell its limits", printable(name_));
  limits_.next = nullptr;
  api::SupportedFeatures features;
  f.AdapterGetFeatures(handle_, &features);
  for (std::size_t i = 0; i < features.count; ++i) features_.insert(feature_name(features.features[i]));
  f.SupportedFeaturesFreeMembers(features);
}

Adapter::Adapter(Adapter&& other) noexcept
    : library_(other.library_),
      handle_(std::exchange(other.handle_, nullptr)),
      name_(std::move(other.name_)),
      vendor_(std::move(other.vendor_)),
      architecture_(std::move(other.architecture_)),
      driver_(std::move(other.driver_)),
      backend_(other.backend_),
      type_(other.type_),
      vendor_id_(other.vendor_id_),
      device_id_(other.device_id_),
      subgroup_min_(other.subgroup_min_),
      subgroup_max_(other.subgroup_max_),
      limits_(other.limits_),
      features_(std::move(other.features_)) {}

Adapter::~Adapter() {
  if (handle_ != nullptr) library_->functions().AdapterRelease(handle_);
}

Json Adapter::describe() const {
  return {{"adapter", name_},       {"vendor", vendor_},        {"architecture", architecture_},
          {"driver", driver_},      {"kind", type_name(type_)}, {"api", backend_name(backend_)},
          {"vendorId", vendor_id_}, {"deviceId", device_id_},   {"subgroupSizes", {subgroup_min_, subgroup_max_}}};
}

Json Adapter::to_json() const {
  Json out = describe();
  out["features"] = features_;
  out["limits"] = {{"maxBufferSize", limits_.max_buffer_bytes},
                   {"maxStorageBufferBindingSize", limits_.max_storage_binding_bytes},
                   {"maxStorageBuffersPerShaderStage", limits_.max_storage_buffers},
                   {"minStorageBufferOffsetAlignment", limits_.min_storage_offset_alignment},
                   {"maxComputeWorkgroupStorageSize", limits_.max_workgroup_bytes},
                   {"maxComputeInvocationsPerWorkgroup", limits_.max_workgroup_invocations},
                   {"maxComputeWorkgroupsPerDimension", limits_.max_workgroups}};
  return out;
}

std::vector<Adapter> list_adapters(const std::shared_ptr<const Library>& library) {
  std::vector<Adapter> adapters;
  const auto add = [&](api::PowerPreference power, bool fallback) {
    api::AdapterImpl* handle = request(*library, power, fallback);
    if (handle == nullptr) return;
    Adapter adapter(library, handle);
    const Json identity = adapter.describe();
    if (identity["api"] == "null") return;
    const auto same = [&](const Adapter& known) { return known.describe() == identity; };
    if (std::none_of(adapters.begin(), adapters.end(), same)) adapters.push_back(std::move(adapter));
  };
  add(api::PowerPreference::high_performance, false);
  add(api::PowerPreference::low_power, false);
  add(api::PowerPreference::undefined, true);
  return adapters;
}

Adapter choose_adapter(const std::shared_ptr<const Library>& library, const std::string& name) {
  std::vector<Adapter> adapters = list_adapters(library);
  if (adapters.empty())
    fail(ErrorCode::device,
         "no WebGPU adapter was found: {} sees no Vulkan device; install a driver (candor device lists what there is)",
         library->path().string());
  std::vector<Adapter> fitting;
  for (Adapter& adapter : adapters)
    if (lower(adapter.name()).find(lower(name)) != std::string::npos) fitting.push_back(std::move(adapter));
  if (fitting.size() == 1) return std::move(fitting.front());
  if (fitting.empty()) {
    adapters = list_adapters(library);
    fail(ErrorCode::device, "no WebGPU adapter's name contains \"{}\"; there are {}", printable(name), names(adapters));
  }
  fail(ErrorCode::device, "several WebGPU adapters are there: {}; name one with --adapter", names(fitting));
}

std::uint32_t feature_number(std::string_view name) {
  for (const auto& [number, known] : kFeatures)
    if (known == name) return number;
  return 0;
}

}  // namespace candor::webgpu
