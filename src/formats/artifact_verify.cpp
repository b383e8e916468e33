#include "formats/artifact_verify.h"

#include <algorithm>
#include <mutex>
#include <random>

#include "base/error.h"
#include "base/sha256.h"
#include "formats/manifest.h"
#include "formats/shard_hash.h"

namespace candor {
namespace {

std::vector<ManifestShard> shards_of(const ModelSource& artifact) {
  if (artifact.format() != SourceFormat::artifact)
    fail(ErrorCode::usage, "{}: is a {} model, which holds no digests; only artifacts can be verified",
         artifact.path().string(), to_string(artifact.format()));
  return manifest_shards(artifact.manifest());
}

/// Hashes part of a file a few pages at a time, so that little of it is in memory.
template <typename Hasher>
void hash_bytes(Hasher& hasher, const MappedFile& file, std::uint64_t offset, std::uint64_t size) {
  constexpr std::uint64_t kAtOnce = 4 << 20;
  for (std::uint64_t done = 0; done < size; done += kAtOnce) {
    const std::uint64_t count = std::min(kAtOnce, size - done);
    hasher.update(file.bytes().subspan(offset + done, count));
    file.drop_pages(offset + done, count);
  }
}

std::string shard_digest(const MappedFile& file, HashAlgorithm algorithm) {
  ShardHasher hasher(algorithm);
  hash_bytes(hasher, file, 0, file.size());
  return hasher.hex();
}

/// Hashes done by many threads; each result has its own place.
class FullVerification {
 public:
  FullVerification(const ModelSource& artifact, Progress* progress)
      : artifact_(artifact), shards_(shards_of(artifact)), progress_(progress) {
    shard_found_.resize(shards_.size());
    tensor_found_.resize(artifact_.tensors().size());
  }

  void run(ThreadPool& pool) {
    const auto shard_count = static_cast<std::uint32_t>(shards_.size());
    const auto tensor_count = static_cast<std::uint32_t>(artifact_.tensors().size());
    pool.parallel_for(shard_count + tensor_count, [&](std::uint32_t unit, unsigned) {
      unit < shard_count ? hash_shard(unit) : hash_tensor(unit - shard_count);
    });
  }

  [[nodiscard]] std::vector<Damage> damages() const {
    std::vector<Damage> out;
    std::vector<bool> explained(shards_.size(), false);
    for (std::size_t i = 0; i < tensor_found_.size(); ++i) {
      const TensorInfo& tensor = artifact_.tensors()[i];
      if (tensor_found_[i] == tensor.sha256) continue;
      for (const TensorExtent& extent : tensor.extents) {
        const bool differs = shard_found_[extent.file] != shards_[extent.file].hash;
        const bool only_extent = tensor.extents.size() == 1;
        if (!differs && !only_extent) continue;  // the damage is in another piece of this tensor
        explained[extent.file] = true;
        out.push_back(
            {shards_[extent.file].filename, extent.offset, extent.size, tensor.name, tensor.sha256, tensor_found_[i]});
      }
    }
    for (std::size_t i = 0; i < shards_.size(); ++i)
      if (shard_found_[i] != shards_[i].hash && !explained[i])
        out.push_back({shards_[i].filename, 0, shards_[i].size, "", shards_[i].hash, shard_found_[i]});
    return out;
  }

 private:
  void hash_shard(std::uint32_t index) {
    shard_found_[index] = shard_digest(artifact_.files()[index], shards_[index].algorithm);
    advance(shards_[index].size);
  }

  void hash_tensor(std::uint32_t index) {
    const TensorInfo& tensor = artifact_.tensors()[index];
    if (tensor.sha256.empty()) return;
    tensor_found_[index] = tensor_sha256(artifact_, tensor);
    advance(tensor.bytes);
  }

  void advance(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    if (progress_) progress_->update(done_);
  }

  const ModelSource& artifact_;
  std::vector<ManifestShard> shards_;
  std::vector<std::string> shard_found_;
  std::vector<std::string> tensor_found_;
  Progress* progress_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

bool has_tensor_digests(const ModelSource& artifact) {
  return std::none_of(artifact.tensors().begin(), artifact.tensors().end(),
                      [](const TensorInfo& tensor) { return tensor.sha256.empty(); });
}

constexpr std::uint64_t kSampledShare = 16;

/// Tensors in random order until they have their share of the bytes.
std::vector<const TensorInfo*> sample_of(const ModelSource& artifact) {
  std::vector<const TensorInfo*> tensors;
  std::uint64_t total = 0;
  for (const TensorInfo& tensor : artifact.tensors()) {
    if (tensor.sha256.empty())
      fail(ErrorCode::usage, "{}: tensors have no digests of their own; verify it in full", artifact.path().string());
    total += tensor.bytes;
    tensors.push_back(&tensor);
  }
  std::shuffle(tensors.begin(), tensors.end(), std::mt19937_64(std::random_device()()));
  std::uint64_t taken = 0;
  std::size_t count = 0;
  while (count < tensors.size() && taken < total / kSampledShare + 1) taken += tensors[count++]->bytes;
  tensors.resize(count);
  return tensors;
}

}  // namespace

std::string_view to_string(VerifyMode mode) {
  switch (mode) {
    case VerifyMode::header:
      return "header";
    case VerifyMode::sampled:
      return "sampled";
    case VerifyMode::full:
      return "full";
  }
  return "unknown";
}

std::optional<VerifyMode> parse_verify_mode(std::string_view name) {
  for (const VerifyMode mode : {VerifyMode::header, VerifyMode::sampled, VerifyMode::full})
    if (to_string(mode) == name) return mode;
  return std::nullopt;
}

Json Verification::to_json() const {
  return {{"mode", to_string(mode)}, {"tensors", tensors}, {"bytes", bytes}};
}

Verification verify_for_loading(const ModelSource& source, VerifyMode mode, ThreadPool& pool) {
  Verification done;
  done.mode = mode;
  if (mode == VerifyMode::header) return done;
  if (mode == VerifyMode::sampled) {
    (void)shards_of(source);  // an artifact, or refused
    const std::vector<const TensorInfo*> sample = sample_of(source);
    pool.parallel_for(static_cast<std::uint32_t>(sample.size()),
                      [&](std::uint32_t i, unsigned) { check_tensor_digest(source, *sample[i]); });
    done.tensors = sample.size();
    for (const TensorInfo* tensor : sample) done.bytes += tensor->bytes;
    return done;
  }
  const std::vector<Damage> damage = verify_artifact(source, pool);
  if (!damage.empty()) {
    const Damage& first = damage.front();
    const std::string more =
        damage.size() == 1 ? "" : fmt::format(" ({} more; candor verify lists all)", damage.size() - 1);
    if (first.tensor.empty())
      fail(ErrorCode::integrity, "{}/{}: its digest is {}, but the manifest says {}; {}{}: restore the file",
           source.path().string(), first.file, first.found, first.expected,
           has_tensor_digests(source) ? "its tensors are whole, so it is other bytes or the manifest that was changed"
                                      : "which tensor was changed is not known, because they have no digests",
           more);
    fail(ErrorCode::integrity,
         "{}/{}: {} bytes from offset {}, tensor \"{}\", are not as they were written{}: restore the file",
         source.path().string(), first.file, first.size, first.offset, printable(first.tensor), more);
  }
  done.tensors = source.tensors().size();
  done.bytes = artifact_bytes(source);
  return done;
}

std::uint64_t artifact_bytes(const ModelSource& artifact) {
  std::uint64_t total = 0;
  for (const ManifestShard& shard : shards_of(artifact)) total += shard.size;
  return total;
}

std::uint64_t verification_bytes(const ModelSource& artifact) {
  std::uint64_t total = artifact_bytes(artifact);
  for (const TensorInfo& tensor : artifact.tensors())
    if (!tensor.sha256.empty()) total += tensor.bytes;
  return total;
}

std::vector<Damage> verify_artifact(const ModelSource& artifact, ThreadPool& pool, Progress* progress) {
  FullVerification verification(artifact, progress);
  verification.run(pool);
  return verification.damages();
}

std::string tensor_sha256(const ModelSource& source, const TensorInfo& tensor) {
  Sha256 hash;
  for (const TensorExtent& extent : tensor.extents)
    hash_bytes(hash, source.files()[extent.file], extent.offset, extent.size);
  return hash.hex();
}

void check_tensor_digest(const ModelSource& source, const TensorInfo& tensor) {
  if (tensor.sha256.empty()) return;
  const std::string found = tensor_sha256(source, tensor);
  if (found == tensor.sha256) return;
  const TensorExtent& first = tensor.extents.front();
  fail(ErrorCode::integrity,
       "{}: tensor \"{}\" ({} bytes from offset {}) has the SHA-256 {}, but the manifest says {}; the file is damaged: "
       "restore it",
       source.files()[first.file].path().string(), printable(tensor.name), tensor.bytes, first.offset, found,
       tensor.sha256);
}

}  // namespace candor
