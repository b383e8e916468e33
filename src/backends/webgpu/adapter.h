// Adapters: which devices the WebGPU library offers, what they can do, and the choice of one. Goals: a run never starts
// on a device that nobody named where there are several, and never on none. Dawn's null backend, which computes
// nothing, is not asked for. The interface cannot list adapters, only answer requests, so several equal cards of one
// machine show as the one that the library prefers.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/webgpu/library.h"
#include "base/json.h"

namespace candor::webgpu {

class Adapter {
 public:
  Adapter(std::shared_ptr<const Library> library, api::AdapterImpl* handle);
  ~Adapter();
  Adapter(Adapter&& other) noexcept;
  Adapter& operator=(Adapter&&) = delete;
  Adapter(const Adapter&) = delete;

  [[nodiscard]] const std::shared_ptr<const Library>& library() const { return library_; }
  [[nodiscard]] api::AdapterImpl* handle() const { return handle_; }
  [[nodiscard]] const std::string& name() const { return name_; }  ///< the device's: "NVIDIA H200"
  [[nodiscard]] const api::Limits& limits() const { return limits_; }
  /// Features by their WebGPU names, of those that kernels can ask for; others by number.
  [[nodiscard]] const std::set<std::string>& features() const { return features_; }
  /// Name, vendor, driver, kind and backend, and the subgroup sizes: what a receipt records.
  [[nodiscard]] Json describe() const;
  /// describe() with limits and features.
  [[nodiscard]] Json to_json() const;

 private:
  std::shared_ptr<const Library> library_;
  api::AdapterImpl* handle_;
  std::string name_, vendor_, architecture_, driver_;
  api::BackendType backend_ = api::BackendType::undefined;
  api::AdapterType type_ = api::AdapterType::unknown;
  std::uint32_t vendor_id_ = 0, device_id_ = 0, subgroup_min_ = 0, subgroup_max_ = 0;
  api::Limits limits_;
  std::set<std::string> features_;
};

/// Every adapter that the library's Vulkan (macOS: Metal, Windows: D3D12) backend gives; may be empty.
[[nodiscard]] std::vector<Adapter> list_adapters(const std::shared_ptr<const Library>& library);

/// The adapter whose name contains `name`, in any case; the only one if `name` is empty. Throws Error(device), listing
/// the adapters, if there is none or more than one.
[[nodiscard]] Adapter choose_adapter(const std::shared_ptr<const Library>& library, const std::string& name);

/// The number of a feature that a kernel may require; 0 for an unknown name.
[[nodiscard]] std::uint32_t feature_number(std::string_view name);

}  // namespace candor::webgpu
