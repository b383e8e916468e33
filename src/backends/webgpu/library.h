// The WebGPU library, loaded at run time. Goals: found by an option, the environment variable CANDOR_WEBGPU_LIB, or
// where scripts/get-webgpu puts it, in this order, and never touched unless a plan asks for this backend. Rejected:
// searching the system's library paths, because another Dawn may lie there with another layout.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "backends/webgpu/api.h"

namespace candor::webgpu {

class Library {
 public:
  /// `path` empty: the environment variable, then the installed places. Throws Error(device) that names the places
  /// looked at, or what the system's loader or the missing function was.
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] const api::Functions& functions() const { return functions_; }
  [[nodiscard]] api::InstanceImpl* instance() const { return instance_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Waits for one future. Throws Error(device) if that fails, naming `what`.
  void wait(api::Future future, const char* what) const;

 private:
  std::filesystem::path path_;
  void* handle_ = nullptr;
  api::Functions functions_{};
  api::InstanceImpl* instance_ = nullptr;
};

}  // namespace candor::webgpu
