// Verification of an artifact's bytes: every shard against its digest and every tensor against its own, so that damage
// is reported as a range of bytes and the tensor that it hits. Sizes, extents, and digests of the manifest and of the
// small files are checked by opening the artifact. Not a goal: repair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "formats/model_source.h"

namespace candor {

/// A range of a shard whose bytes are not those that were written.
struct Damage {
  std::string file;          ///< name of the shard
  std::uint64_t offset = 0;  ///< of the range in that file
  std::uint64_t size = 0;    ///< in bytes
  std::string tensor;        ///< the tensor there; empty where only the whole shard has a digest
  std::string expected;      ///< digest in the manifest
  std::string found;         ///< digest of the bytes
};

/// Bytes that verify_artifact hashes; the total for its progress.
[[nodiscard]] std::uint64_t verification_bytes(const ModelSource& artifact);

/// Bytes of its shards; verify_artifact hashes those of tensors with digests of their own a second time.
[[nodiscard]] std::uint64_t artifact_bytes(const ModelSource& artifact);

/// Hashes everything; empty if all is as it was written. A shard that differs is reported by its damaged tensors, or as
/// a whole if those it holds are intact or have no digest. Throws Error(usage) for other formats.
[[nodiscard]] std::vector<Damage> verify_artifact(const ModelSource& artifact, ThreadPool& pool,
                                                  Progress* progress = nullptr);

/// How much is hashed when a model is loaded. Sizes, extents and the digests of the manifest and of small files are
/// always checked.
enum class VerifyMode : std::uint8_t {
  header,   ///< no weights
  sampled,  ///< tensors chosen at random, other ones each time, with about a sixteenth of all bytes
  full      ///< every byte
};

[[nodiscard]] std::string_view to_string(VerifyMode mode);
[[nodiscard]] std::optional<VerifyMode> parse_verify_mode(std::string_view name);

/// What was hashed, for receipts.
struct Verification {
  VerifyMode mode = VerifyMode::header;
  std::uint64_t tensors = 0;  ///< whose digests were compared
  std::uint64_t bytes = 0;    ///< of the files that were hashed

  [[nodiscard]] Json to_json() const;
};

/// Throws Error(integrity), naming shard, tensor and range, if a byte that was hashed is not as it was written;
/// Error(usage) if the mode needs digests that the model does not have.
Verification verify_for_loading(const ModelSource& source, VerifyMode mode, ThreadPool& pool);

/// Throws Error(integrity), naming the tensor and its bytes, if a tensor's bytes do not match its digest. Tensors
/// without one pass.
void check_tensor_digest(const ModelSource& source, const TensorInfo& tensor);

/// The SHA-256 of a tensor's bytes, 64 lower-case hexadecimal digits.
[[nodiscard]] std::string tensor_sha256(const ModelSource& source, const TensorInfo& tensor);

}  // namespace candor
