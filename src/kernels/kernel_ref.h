// Kernel refs: {id, version, digest} pins a step to the source of its kernel. The digest is of the content, so a step
// whose kernel has changed since the manifest was written no longer compiles. Not a goal: finding the kernel; the
// registry does. Texts of errors are the execution-v0 schema's.
#pragma once

#include <string>
#include <string_view>

#include "base/js_value.h"
#include "kernels/registry.h"

namespace candor::kernels {

inline constexpr std::string_view kKernelRefVersion = "1.0.0";

struct KernelRef {
  std::string id;       ///< "rmsnorm.main"
  std::string version;  ///< kKernelRefVersion
  std::string digest;   ///< "sha256:" and 64 hexadecimal digits

  [[nodiscard]] Json to_json() const;
};

/// A `kernel` field as text, trimmed. Throws Error(plan) if nothing is left.
[[nodiscard]] std::string kernel_name(js::Value kernel);
/// An `entry` field as text, trimmed; "main" if it is absent or blank.
[[nodiscard]] std::string entry_name(js::Value entry);

/// The content digest of a kernel, 64 hexadecimal digits. Throws Error(plan) if none is registered.
[[nodiscard]] std::string content_digest(const KernelRegistry& registry, std::string_view kernel,
                                         std::string_view entry);

/// The ref of a kernel. `kernel` and `entry` are as kernel_name() and entry_name() give them.
[[nodiscard]] KernelRef build_kernel_ref(const KernelRegistry& registry, std::string_view kernel,
                                         std::string_view entry);

/// True if `ref` is the ref of this kernel; further keys of it are ignored. Where `ref` is an object, throws as
/// kernel_name() and build_kernel_ref() do.
[[nodiscard]] bool is_bound(const KernelRegistry& registry, js::Value ref, js::Value kernel, js::Value entry);

/// The ref of manifests from before content digests: its digest is that of the text "<kernel>#<entry>".
[[nodiscard]] KernelRef legacy_kernel_ref(std::string_view kernel, std::string_view entry);

}  // namespace candor::kernels
