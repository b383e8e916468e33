// manifest.json of an artifact: the RDRR format's version 1 with what this project adds to it
// (docs/formats/artifact.md). The checks of the original reader come first and keep its messages; then the ones that it
// leaves out: sizes against dtype and shape, extents, overlaps, file names, digests. All failures are reported
// together. Not a goal: what the inference section means; that is the plan's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "formats/tensor.h"

namespace candor {

/// `blake3` is the original's variant of it (shard_hash.h).
enum class HashAlgorithm : std::uint8_t { sha256, blake3 };

[[nodiscard]] std::string_view to_string(HashAlgorithm algorithm);

struct ManifestShard {
  std::string filename;
  std::uint64_t size = 0;  ///< bytes
  std::string hash;        ///< 64 lower-case hexadecimal digits over the whole file
  HashAlgorithm algorithm = HashAlgorithm::sha256;
};

/// A file beside the shards (tokenizer.json, …) that the manifest pins.
struct ManifestFile {
  std::string name;
  std::uint64_t size = 0;
  std::string sha256;
};

struct Manifest {
  Json document;  ///< as it was parsed
  std::vector<ManifestShard> shards;
  std::vector<TensorInfo> tensors;  ///< an extent's file is the index of its shard
  std::vector<ManifestFile> files;
  bool sealed = false;  ///< has a manifestDigest, which was right; then every tensor and file has a digest
};

/// Error(integrity): the document is not what its manifestDigest says. It carries the document, so that a caller who
/// knows what the parts mean can say which was changed; nothing else may be done with it.
class BrokenSeal : public Error {
 public:
  BrokenSeal(const std::string& message, Json document)
      : Error(ErrorCode::integrity, message), document_(std::make_shared<const Json>(std::move(document))) {}

  [[nodiscard]] const Json& document() const { return *document_; }

 private:
  std::shared_ptr<const Json> document_;
};

/// Parses and checks. `label` (the path) starts every message. `external_tensors` is the text of the file that
/// `tensorsFile` names, where the caller found one. Throws Error(format) listing everything that is wrong, or
/// BrokenSeal if the document does not match its own digest.
[[nodiscard]] Manifest parse_manifest(std::string_view text, std::string_view label,
                                      const std::optional<std::string>& external_tensors = std::nullopt);

/// The shards of a manifest document that parse_manifest has accepted.
[[nodiscard]] std::vector<ManifestShard> manifest_shards(const Json& manifest);

/// Puts `manifestDigest` last: the digest of the canonical JSON of everything else. Whoever changes a manifest seals
/// it.
void seal_manifest(Json& manifest);

/// An encoding as manifests write it: "Q4_K_M" for q4_k, else the name in capitals.
[[nodiscard]] std::string dtype_name(Encoding encoding);
/// The reverse; "Q4_K" is read as well. Nothing for other names and for encodings that no file holds.
[[nodiscard]] std::optional<Encoding> parse_dtype(std::string_view name);

/// The role that the original's converter gives a tensor for its name: embedding, lm_head, norm, matmul, expert, router
/// or other.
[[nodiscard]] std::string_view tensor_role(std::string_view name);

}  // namespace candor
