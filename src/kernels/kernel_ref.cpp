#include "kernels/kernel_ref.h"

#include "base/error.h"
#include "base/sha256.h"

namespace candor::kernels {
namespace {

/// Lower case, every run of characters outside [a-z0-9] one point, none at either end; "kernel" if nothing is left.
std::string token(std::string_view text) {
  std::string out;
  for (const char c : js::to_lower(js::trim(text))) {
    const bool keep = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (keep) {
      out += c;
    } else if (!out.empty() && out.back() != '.') {
      out += '.';
    }
  }
  if (out.ends_with('.')) out.pop_back();
  return out.empty() ? "kernel" : out;
}

std::string_view without_wgsl(std::string_view kernel) {
  constexpr std::string_view kExtension = ".wgsl";
  if (kernel.size() < kExtension.size()) return kernel;
  const std::string_view end = kernel.substr(kernel.size() - kExtension.size());
  for (std::size_t i = 0; i < end.size(); ++i) {
    const char lower = end[i] >= 'A' && end[i] <= 'Z' ? static_cast<char>(end[i] - 'A' + 'a') : end[i];
    if (lower != kExtension[i]) return kernel;
  }
  return kernel.substr(0, kernel.size() - kExtension.size());
}

KernelRef make_ref(std::string_view kernel, std::string_view entry, std::string_view digest) {
  return {fmt::format("{}.{}", token(without_wgsl(kernel)), token(entry)), std::string(kKernelRefVersion),
          fmt::format("sha256:{}", digest)};
}

}  // namespace

Json KernelRef::to_json() const {
  Json out = Json::object();
  out["id"] = id;
  out["version"] = version;
  out["digest"] = digest;
  return out;
}

std::string kernel_name(js::Value kernel) {
  std::string name = js::trimmed_text(kernel);
  if (name.empty()) fail(ErrorCode::plan, "kernel must be a non-empty string");
  return name;
}

std::string entry_name(js::Value entry) {
  std::string name = js::trimmed_text(entry);
  return name.empty() ? "main" : name;
}

std::string content_digest(const KernelRegistry& registry, std::string_view kernel, std::string_view entry) {
  auto digest = registry.digest(kernel, entry);
  if (!digest) fail(ErrorCode::plan, "No kernel content digest registered for \"{}#{}\"", kernel, entry);
  return *std::move(digest);
}

KernelRef build_kernel_ref(const KernelRegistry& registry, std::string_view kernel, std::string_view entry) {
  return make_ref(kernel, entry, content_digest(registry, kernel, entry));
}

bool is_bound(const KernelRegistry& registry, js::Value ref, js::Value kernel, js::Value entry) {
  if (!js::is_plain_object(ref)) return false;
  const KernelRef expected = build_kernel_ref(registry, kernel_name(kernel), entry_name(entry));
  return js::strict_equal(js::get(ref, "id"), expected.id) &&
         js::strict_equal(js::get(ref, "version"), expected.version) &&
         js::strict_equal(js::get(ref, "digest"), expected.digest);
}

KernelRef legacy_kernel_ref(std::string_view kernel, std::string_view entry) {
  return make_ref(kernel, entry, sha256_hex(fmt::format("{}#{}", kernel, entry)));
}

}  // namespace candor::kernels
