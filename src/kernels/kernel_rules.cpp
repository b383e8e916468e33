#include "kernels/kernel_rules.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "kernels/rules.h"

namespace candor::embedded {
extern const std::string_view kernel_path_cpu;
extern const std::string_view kernel_path_cpu_fused;
extern const std::string_view kernel_path_webgpu;
extern const std::string_view kernel_path_webgpu_fused;
}  // namespace candor::embedded

namespace candor::kernels {
namespace {

/// The files of kernel_paths/, by id.
constexpr std::array<std::pair<std::string_view, const std::string_view*>, 4> kBuiltin{
    {{"cpu", &embedded::kernel_path_cpu},
     {"cpu-fused", &embedded::kernel_path_cpu_fused},
     {"webgpu", &embedded::kernel_path_webgpu},
     {"webgpu-fused", &embedded::kernel_path_webgpu_fused}}};

std::string required_string(const Json& path, const char* key) {
  if (!path.is_object() || !path.contains(key) || !path[key].is_string() ||
      path[key].get_ref<const std::string&>().empty())
    fail(ErrorCode::format, "kernel path: {} must be a non-empty string", key);
  return path[key].get<std::string>();
}

}  // namespace

KernelRules::KernelRules(Json path)
    : path_(std::move(path)),
      id_(required_string(path_, "id")),
      backend_(required_string(path_, "backend")),
      activation_dtype_(required_string(path_, "activationDtype")),
      kv_dtype_(required_string(path_, "kvDtype")) {
  if (!path_.contains("rules") || !path_["rules"].is_array())
    fail(ErrorCode::format, "kernel path {}: rules must be an array of {{match, value}}", id_);
  if (!path_.contains("extends")) return;
  const KernelRules base = builtin_kernel_rules(required_string(path_, "extends"));
  if (base.backend_ != backend_)
    fail(ErrorCode::format, "kernel path {}: backend is {}, but it extends {}, which is for {}", id_, backend_,
         base.id_, base.backend_);
  for (const Json& rule : base.path_["rules"]) path_["rules"].push_back(rule);
}

KernelChoice KernelRules::choose(const KernelQuery& query) const {
  if (auto choice = find(query)) return std::move(*choice);
  fail(ErrorCode::plan,
       "kernel path {} has no kernel for role {} (operation {}, encoding {}, phase {}); convert the weights with "
       "candor convert, or pass another path with --kernel-path",
       id_, query.role, query.operation, query.encoding.empty() ? "none" : query.encoding, query.phase);
}

std::optional<KernelChoice> KernelRules::find(const KernelQuery& query) const {
  const Json context{{"role", query.role},
                     {"operation", query.operation},
                     {"encoding", query.encoding.empty() ? Json() : Json(query.encoding)},
                     {"phase", query.phase}};
  Json value;
  try {
    value = select_rule_value(path_["rules"], context);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::plan) throw;
    return std::nullopt;
  }
  if (!value.is_object() || !value.contains("kernel") || !value["kernel"].is_string())
    fail(ErrorCode::format, "kernel path {}: a rule's value must be {{kernel, entry}}", id_);
  KernelChoice choice{value["kernel"].get<std::string>(), "main"};
  if (value.contains("entry")) {
    if (!value["entry"].is_string()) fail(ErrorCode::format, "kernel path {}: entry must be a string", id_);
    choice.entry = value["entry"].get<std::string>();
  }
  return choice;
}

std::vector<std::string> builtin_kernel_rules() {
  std::vector<std::string> ids;
  for (const auto& entry : kBuiltin) ids.emplace_back(entry.first);
  return ids;
}

KernelRules builtin_kernel_rules(std::string_view id) {
  for (const auto& [name, text] : kBuiltin)
    if (name == id) return KernelRules(parse_json(*text, "kernel_paths/" + std::string(name) + ".json"));
  fail(ErrorCode::not_found, "kernel path \"{}\" is unknown; known are {}", printable(id),
       fmt::join(builtin_kernel_rules(), ", "));
}

}  // namespace candor::kernels
