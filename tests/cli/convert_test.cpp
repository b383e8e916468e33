// Conversions as a person makes them: what a refusal says to do works, and what was converted converts again.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "cli/program.h"
#include "formats/gguf_writer.h"
#include "formats/manifest.h"
#include "formats/model_source.h"
#include "formats/test_folder.h"

namespace candor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

fs::path synthesize(const TestFolder& folder, const char* name, const char* quant) {
  const fs::path path = folder.path() / name;
  const Outcome made = run_program({"synth", "llama-1m", path, "--quant", quant, "--seed", "3"});
  EXPECT_EQ(made.status, 0) << made.err;
  return path;
}

/// A model whose matrices are of a type that can be read and has no kernel: blocks that all decode to small numbers.
fs::path with_matrices_of(Encoding encoding, const fs::path& model, const fs::path& output) {
  const ModelSource source = ModelSource::open(model);
  std::vector<TensorInfo> tensors = source.tensors();
  for (TensorInfo& tensor : tensors) {
    if (tensor.shape.size() == 2) tensor.encoding = encoding;
    tensor.extents.clear();
  }
  const OutputLayout layout = layout_gguf("model", GgufPairs(*source.gguf()), tensors);
  std::string bytes = layout.files.front().header;
  bytes.resize(layout.files.front().size);
  for (const TensorInfo& tensor : layout.tensors) {
    char* const at = bytes.data() + tensor.extents.front().offset;
    if (tensor.shape.size() == 1) {
      const std::span<const std::byte> values = source.bytes(*source.find(tensor.name));
      std::copy_n(reinterpret_cast<const char*>(values.data()), values.size(), at);
    }
    for (std::uint64_t i = 0; tensor.shape.size() == 2 && i < tensor.bytes; ++i)
      at[i] = static_cast<char>(i * 37 % 59);  // wherever a binary16 scale stands, it is below 1
  }
  write_file_atomically(output, bytes);
  return output;
}

class Unusable : public testing::TestWithParam<Encoding> {};

/// The line that the refusal prints is run as it stands, in a shell, on a name that must be quoted.
TEST_P(Unusable, EncodingIsRefusedWithTheConversionThatHelps) {
  const TestFolder folder;
  const fs::path usable = synthesize(folder, "usable.gguf", "q8_0");
  const fs::path model = with_matrices_of(GetParam(), usable, folder.path() / "it's a model.gguf");
  const Outcome refused = run_program({"run", model, "--raw", "-p", "x"});
  expect_error(refused, 5, to_string(GetParam()));
  const std::string lead = "convert them: candor ";
  const auto found = refused.err.find(lead);
  ASSERT_NE(found, std::string::npos) << refused.err;
  std::string line = refused.err.substr(found + lead.size());
  line.pop_back();
  EXPECT_THAT(line, HasSubstr("--requantize"));
  const std::string quiet = " >" + (folder.path() / "log").string() + " 2>&1";
  ASSERT_EQ(std::system((CANDOR_PROGRAM " " + line + quiet).c_str()), 0) << line << "\n"
                                                                         << read_file(folder.path() / "log", 1 << 20);
  const Outcome used = run_program({"logits", folder.path() / "it's a model-q8_0.gguf", "--tokens", "1,2,3", "--out",
                                    folder.path() / "logits.safetensors"});
  EXPECT_EQ(used.status, 0) << used.err;
}

INSTANTIATE_TEST_SUITE_P(Encodings, Unusable,
                         testing::Values(Encoding::iq4_xs, Encoding::q2_k, Encoding::q5_1, Encoding::mxfp4),
                         [](const auto& parameter) { return std::string(to_string(parameter.param)); });

std::string tensor_data(const fs::path& gguf) {
  const ModelSource source = ModelSource::open(gguf);
  std::string out;
  for (const TensorInfo& tensor : source.tensors()) {
    const std::span<const std::byte> bytes = source.bytes(tensor);
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return out;
}

TEST(ConvertAgain, AnArtifactOfAGgufFileIsASourceLikeTheFile) {
  const TestFolder folder;
  const fs::path file = synthesize(folder, "source.gguf", "f16");
  const auto convert = [&](const fs::path& from, const char* to, std::vector<std::string> options) {
    std::vector<std::string> words{"convert", from, folder.path() / to};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = run_program(words);
    EXPECT_EQ(outcome.status, 0) << to << ": " << outcome.err;
    return folder.path() / to;
  };
  const fs::path artifact = convert(file, "artifact", {});
  EXPECT_EQ(tensor_data(convert(artifact, "back.gguf", {})), tensor_data(file));
  EXPECT_EQ(tensor_data(convert(artifact, "small.gguf", {"--quant", "q4_k_m"})),
            tensor_data(convert(file, "direct.gguf", {"--quant", "q4_k_m"})));
  const auto manifest_of = [](const fs::path& folder_of_it) {
    return parse_json(read_file(folder_of_it / "manifest.json", 1 << 24), "manifest.json");
  };
  const Json twice = manifest_of(convert(artifact, "small", {"--quant", "q8_0"}));
  const Json once = manifest_of(convert(file, "direct", {"--quant", "q8_0"}));
  EXPECT_EQ(twice["shards"], once["shards"]);
  EXPECT_EQ(twice["golden"], once["golden"]);
  EXPECT_EQ(run_program({"verify", folder.path() / "small"}).status, 0);
  // Safetensors folders need the configuration of a Hugging Face model, which a GGUF file does not have.
  expect_error(run_program({"convert", artifact, folder.path() / "folder", "--to", "safetensors"}), 5, "config.json");
  EXPECT_FALSE(fs::exists(folder.path() / "folder"));
}

TEST(ConvertInterrupted, SaysThatItGoesOnAndDoes) {
  const TestFolder folder;
  const fs::path source = folder.path() / "source.gguf";
  ASSERT_EQ(run_program({"synth", "llama-15m", source, "--quant", "f32"}).status, 0);
  const fs::path output = folder.path() / "out.gguf";
  const std::vector<std::string> words{"convert", source, output, "--quant", "q4_k_m", "--threads", "1"};
  expect_error(interrupt_program_at(output.string() + ".partial", words), 130,
               "candor: interrupted; the same command goes on from here\n");
  EXPECT_FALSE(fs::exists(output));
  const Outcome again = run_program(words);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(fs::exists(output));
}

TEST(ConvertOptions, AContextThatChangesNothingIsRefused) {
  const TestFolder folder;
  const fs::path file = synthesize(folder, "source.gguf", "f16");
  expect_error(run_program({"convert", file, folder.path() / "out", "--context", "512"}), 2,
               "--context 512 would do nothing");
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
}

/// Sealed anew by someone who knew how: what the manifest then says of itself must still fit.
TEST(ChangedManifests, WithFewerLayersOrUnknownPoliciesAreRefused) {
  const TestFolder folder;
  const fs::path model = synthesize(folder, "model", "f16");
  const Json whole = parse_json(read_file(model / "manifest.json", 1 << 24), "manifest.json");
  const auto refused = [&](const Json& changed) {
    Json manifest = changed;
    seal_manifest(manifest);
    write_file_atomically(model / "manifest.json", to_js_json(manifest, 2));
    return run_program({"logits", model, "--tokens", "1,2", "--out", folder.path() / "logits.safetensors"});
  };
  Json fewer = whole;
  fewer["architecture"]["numLayers"] = 1;
  expect_error(refused(fewer), 4, "numLayers is 1, but the manifest lists tensor \"");
  Json policies = whole;
  policies["inference"]["execution"]["policies"]["surprise\x1b[31m"] = "error";
  expect_error(refused(policies), 6, "execution.policies.surprise\\x1b[31m is unknown; known are ");
  Json renamed = whole;  // an id is any text, but no command to the terminal
  renamed["inference"]["execution"]["steps"][1]["id"] = "step\x1b[31m\xc2\x9b";
  EXPECT_EQ(refused(renamed).status, 0);
  const Outcome shown = run_program({"plan", "show", model});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("step\\x1b[31m\\x9b "));
  EXPECT_EQ(shown.out.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace candor
