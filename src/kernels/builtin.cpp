#include "kernels/builtin.h"

#include <string_view>

#include "base/error.h"
#include "kernels/content_digest.h"
#include "kernels/registry.h"

namespace candor::embedded {
extern const std::string_view kernel_registry;
extern const std::string_view kernel_digests;
extern const std::string_view kernel_path_rules;
extern const std::string_view backward_registry;
}  // namespace candor::embedded

namespace candor::kernels {

const KernelRegistry& builtin_registry() {
  static const KernelRegistry registry(parse_json(embedded::kernel_registry, "built-in registry.json"),
                                       parse_json(embedded::kernel_digests, "built-in kernel digests"));
  return registry;
}

const Json& builtin_kernel_path_rules() {
  static const Json rules = parse_json(embedded::kernel_path_rules, "built-in kernel_path_rules.json");
  return rules;
}

const Json& builtin_backward_registry() {
  static const Json registry = parse_json(embedded::backward_registry, "built-in backward_registry.json");
  return registry;
}

std::vector<DigestDifference> verify(const std::filesystem::path& source_directory) {
  std::vector<DigestDifference> differences;
  ContentDigester digester(source_directory);
  for (const KernelOperation& operation : builtin_registry().operations()) {
    for (const KernelVariant& variant : operation.variants) {
      DigestDifference found{variant.file, variant.entry, {}, {}};
      found.compiled = builtin_registry().digest(variant.file, variant.entry).value_or("");
      try {
        found.source = digester.digest(variant.file, variant.entry);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::not_found) throw;
      }
      if (found.compiled != found.source) differences.push_back(std::move(found));
    }
  }
  return differences;
}

}  // namespace candor::kernels
