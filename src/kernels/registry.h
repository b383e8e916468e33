// The kernel registry: which kernels exist, by operation and variant, what each declares, and the digest of each one's
// source. Goals: one value that holds it all, in registry order, found by file and entry in constant time; the raw JSON
// of a variant stays at hand, so that a field only one reader needs is not a field of everyone. Not a goal: choosing a
// kernel (kernel paths do), running one (backends do). Rejected: a global table that kernels register themselves in,
// because a plan must be compilable against a registry that is not this build's.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace candor::kernels {

/// One variant of an operation: a source file, an entry in it, and what it declares.
struct KernelVariant {
  std::string operation;       ///< "matmul"
  std::string name;            ///< the variant's name in its operation: "gemv_subgroup"
  std::string file;            ///< JSON key `file` or `wgsl`: "matmul_gemv_subgroup.wgsl", "cpu/matmul.cpp"
  std::string entry = "main";  ///< JSON key `entryPoint`
  std::array<std::uint32_t, 3> workgroup{};    ///< threads a workgroup; {0, 0, 0} where none is declared
  std::vector<std::string> required_features;  ///< JSON key `requires`
  std::string output_dtype;                    ///< JSON key `outputDtype`; empty where none is declared
  Json bindings = Json::array();               ///< the operation's bindings with this variant's put over them, by index
  Json uniforms;                               ///< `uniformsOverride`, or the operation's `baseUniforms`
  Json wgsl_overrides = Json::object();        ///< pipeline-overridable constants that are part of the variant
  std::uint64_t shared_memory = 0;             ///< bytes of workgroup memory
  Json variant_metadata;                       ///< null where none is declared
  Json raw;                                    ///< the variant as the registry has it, own additional fields included
};

/// One operation and its variants, in registry order.
struct KernelOperation {
  std::string name;
  Json raw;  ///< the operation without its variants
  std::vector<KernelVariant> variants;
};

/// The output dtypes that the variants of one file and entry declare: lower case, first declared first.
using OutputDtypes = std::vector<std::string>;

class KernelRegistry {
 public:
  /// `registry` as registry.json has it; `digests` maps "<file>#<entry>" to 64 lower-case hexadecimal digits.
  /// Throws Error(format), naming the field.
  KernelRegistry(const Json& registry, const Json& digests);

  [[nodiscard]] const std::vector<KernelOperation>& operations() const { return operations_; }
  /// Null if there is no such operation.
  [[nodiscard]] const KernelOperation* find_operation(std::string_view name) const;
  /// The first variant of this file and entry; null if there is none.
  [[nodiscard]] const KernelVariant* find(std::string_view file, std::string_view entry) const;
  /// Throws Error(not_found) "Unknown kernel: <operation>/<variant>".
  [[nodiscard]] const KernelVariant& get(std::string_view operation, std::string_view variant) const;
  /// Null if no variant has this file and entry; empty if none of them declares an output dtype.
  [[nodiscard]] const OutputDtypes* output_dtypes(std::string_view file, std::string_view entry) const;
  /// The content digest: 64 lower-case hexadecimal digits without a prefix.
  [[nodiscard]] std::optional<std::string> digest(std::string_view file, std::string_view entry) const;

 private:
  struct Kernel {
    std::size_t operation;
    std::size_t variant;
    OutputDtypes output_dtypes;
  };

  void add_operation(const std::string& name, const Json& operation);
  [[nodiscard]] const Kernel* find_kernel(std::string_view file, std::string_view entry) const;

  std::vector<KernelOperation> operations_;
  std::unordered_map<std::string, Kernel> kernels_;       // by "<file>#<entry>"
  std::unordered_map<std::string, std::string> digests_;  // by "<file>#<entry>"
};

/// Reads `registry.json` and `kernel-ref-digests.json` in `directory`. Throws Error(not_found), Error(io),
/// Error(format).
[[nodiscard]] KernelRegistry load_registry(const std::filesystem::path& directory);

/// The registry compiled into this program, with the digests of the sources it was built from.
[[nodiscard]] const KernelRegistry& builtin_registry();

}  // namespace candor::kernels
