// A whole artifact folder with parts of it changed, in this project's form and in the original's: fields of the
// manifest (sealed anew or not), bytes or the length of any file, files that are missing. Opening refuses it with an
// Error, or its tensors are what its manifest says and hashing finds whatever differs in a shard.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "allocation_limit.h"
#include "base/error.h"
#include "base/sha256.h"
#include "choices.h"
#include "formats/artifact_verify.h"
#include "formats/artifact_writer.h"
#include "formats/gguf_writer.h"
#include "formats/manifest.h"
#include "formats/model_source.h"
#include "model_invariants.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

/// The files of a folder by name.
using Files = std::map<std::string, std::string>;

constexpr std::array<const char*, 2> kShards = {"shard_00000.bin", "shard_00001.bin"};

class ScratchFolder {
 public:
  ScratchFolder() : path_(fs::temp_directory_path() / ("candor-fuzz-artifact-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TensorInfo tensor(std::string name, Encoding encoding, std::vector<std::uint64_t> shape) {
  TensorInfo info;
  info.name = std::move(name);
  info.encoding = encoding;
  info.shape = std::move(shape);
  return info;
}

/// As the writer makes it: two tensors, one of them over the border of two shards, and small files of each kind.
Files sealed_artifact(const fs::path& scratch, ThreadPool& pool) {
  ArtifactContent content;
  content.header = parse_json(R"({
    "version": 1, "modelId": "m", "modelType": "transformer", "quantization": "Q4_K_M", "eos_token_id": 1,
    "architecture": {"numLayers": 1, "hiddenSize": 2, "intermediateSize": 2, "numAttentionHeads": 1,
                     "numKeyValueHeads": 1, "headDim": 2, "vocabSize": 4, "maxSeqLen": 8},
    "moeConfig": null, "inference": {"execution": {"steps": [], "policies": {}}}})",
                              "header");
  GgufPairs pairs;
  pairs.set_string("general.architecture", "llama");
  pairs.set_strings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "bc"});
  content.tensors = {tensor("norm", Encoding::f32, {4}), tensor("weight", Encoding::q4_k, {1, 256})};
  content.files = {{"tokenizer.json", R"({"model":{"vocab":{"a":0,"b":1}}})"},
                   {"tokenizer_config.json", R"({"chat_template":"{{ messages }}"})"},
                   {"config.json", R"({"model_type":"llama"})"},
                   {"tokenizer.gguf", layout_gguf("tokenizer.gguf", pairs, {}).files.front().header}};
  content.shard_bytes = 100;
  const fs::path folder = scratch / "made";
  fs::remove_all(folder);
  ArtifactWriter writer(folder, std::move(content), "key");
  for (const TensorInfo& planned : std::vector(writer.staged().layout().tensors))
    writer.staged().write(std::vector(planned.bytes, std::byte{0x35}));
  (void)writer.finish(pool);
  Files files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path(), 1 << 20);
  fs::remove_all(folder);
  return files;
}

/// The same as the original writes it: nothing is sealed and tensors have no digests, or stand in a file of their own.
Files original_artifact(Files files, bool tensors_apart) {
  Json manifest = parse_json(files["manifest.json"], "sealed");
  for (const char* key : {"manifestDigest", "files"}) manifest.erase(key);
  for (Json& entry : manifest["tensors"]) entry.erase("sha256");
  if (tensors_apart) {
    files["tensors.json"] = manifest["tensors"].dump();
    manifest.erase("tensors");
    manifest["tensorsFile"] = "tensors.json";
  }
  files["manifest.json"] = manifest.dump();
  return files;
}

/// Bytes of any file are changed, or its length, or it is missing.
void perturb_file(Files& files, Choices& choices) {
  auto chosen = files.begin();
  std::advance(chosen, choices.below(files.size()));
  std::string& bytes = chosen->second;
  switch (choices.below(6)) {
    case 0:
      if (files.size() > 1) files.erase(chosen);
      break;
    case 1:
      bytes.resize(choices.below(bytes.size() + 2));
      break;
    default:
      if (!bytes.empty()) {
        constexpr std::size_t kWidths[] = {1, 4, 8};
        const std::size_t at = choices.below(bytes.size());
        poke(bytes, at, choices.value(), kWidths[choices.below(3)]);
      }
  }
}

/// The manifest with fields changed and, perhaps, the digests of small files and its own set right again, so that the
/// checks behind them are reached.
void perturb_manifest(Files& files, Choices& choices, std::size_t changes) {
  Json manifest;
  try {
    manifest = parse_json(files["manifest.json"], "manifest");
  } catch (const Error&) {
    return;
  }
  if (!manifest.is_object()) return;
  for (std::size_t i = 0; i < changes; ++i) perturb_leaf(manifest, 96, choices);
  const bool sealed = manifest.contains("manifestDigest");
  if (sealed && choices.below(4) != 0) {
    if (const auto pinned = manifest.find("files"); pinned != manifest.end() && pinned->is_object())
      for (const auto& [name, content] : files)
        if (pinned->contains(name)) (*pinned)[name] = {{"size", content.size()}, {"sha256", sha256_hex(content)}};
    seal_manifest(manifest);
  }
  files["manifest.json"] = manifest.dump();
}

class Target {
 public:
  Target() {
    forms_[0] = sealed_artifact(scratch_.path(), pool_);
    forms_[1] = original_artifact(forms_[0], false);
    forms_[2] = original_artifact(forms_[0], true);
    for (const Files& form : forms_) {  // what is perturbed must be valid, or nothing behind the first check is tested
      write(form);
      require(verify_artifact(ModelSource::open(scratch_.path()), pool_).empty());
    }
  }

  void run(Choices& choices) {
    const Files& valid = forms_[choices.below(forms_.size())];
    Files files = valid;
    const std::size_t changes = 1 + choices.below(3);
    std::size_t fields = 0;
    for (std::size_t i = 0; i < changes; ++i) choices.below(2) == 0 ? perturb_file(files, choices) : void(++fields);
    if (fields > 0 && files.contains("manifest.json")) perturb_manifest(files, choices, fields);
    write(files);
    check(valid, files);
  }

 private:
  void write(const Files& files) {
    std::error_code ignored;
    for (const auto& [name, content] : written_)
      if (!files.contains(name)) fs::remove(scratch_.path() / name, ignored);
    for (const auto& [name, content] : files)
      if (const auto old = written_.find(name); old == written_.end() || old->second != content)
        std::ofstream(scratch_.path() / name, std::ios::binary) << content;
    written_ = files;
  }

  void check(const Files& valid, const Files& files) {
    std::size_t size = 0;
    for (const auto& [name, content] : files) size += content.size();
    const AllocationLimit limit(size, 256);
    const ModelSource source = ModelSource::open(scratch_.path());
    std::vector<std::uint64_t> sizes;
    for (const MappedFile& file : source.files()) sizes.push_back(file.size());
    check_tensors(source.tensors(), sizes);
    for (const TensorInfo& tensor : source.tensors()) {
      std::vector<std::byte> bytes(tensor.bytes);
      source.copy_bytes(tensor, bytes);
    }
    const std::vector<Damage> damages = verify_artifact(source, pool_);
    bool shards_differ = false;
    for (const char* name : kShards) shards_differ = shards_differ || valid.at(name) != files.at(name);
    if (valid.at("manifest.json") == files.at("manifest.json")) require(damages.empty() == !shards_differ);
  }

  ScratchFolder scratch_;
  ThreadPool pool_{1};
  std::array<Files, 3> forms_;
  Files written_;
};

}  // namespace
}  // namespace candor

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static candor::Target target;
  candor::Choices choices(data, size);
  try {
    target.run(choices);
  } catch (const candor::Error&) {
  }
  return 0;
}
