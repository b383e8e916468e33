#include "formats/side_files.h"

#include <optional>

#include "base/error.h"
#include "formats/model_source_builder.h"

namespace candor {
namespace {

void add_text(std::vector<SideFile>& files, const char* name, const std::optional<std::string>& text) {
  if (text) files.push_back({name, *text});
}

void add_json(std::vector<SideFile>& files, const char* name, const Json& value) {
  if (!value.is_null()) files.push_back({name, to_js_json(value, 2) + "\n"});
}

void add_tokenizer(std::vector<SideFile>& files, const ModelSource& source) {
  add_text(files, "tokenizer.json", source.tokenizer_json());
  add_text(files, "tokenizer_config.json", source.tokenizer_config());
  add_text(files, "tokenizer.model", source.sentencepiece_model());
}

/// chat_template.jinja, unless tokenizer_config.json or GGUF metadata say the same.
void add_chat_template(std::vector<SideFile>& files, const ModelSource& source, bool with_gguf) {
  if (!source.chat_template()) return;
  std::optional<std::string> elsewhere;
  if (source.tokenizer_config()) elsewhere = chat_template_of(*source.tokenizer_config(), source.path());
  if (!elsewhere && with_gguf && source.gguf())
    if (const auto text = source.gguf()->string("tokenizer.chat_template")) elsewhere = std::string(*text);
  if (elsewhere != source.chat_template()) files.push_back({"chat_template.jinja", *source.chat_template()});
}

std::optional<std::string> torch_dtype(QuantMix mix) {
  if (mix == QuantMix::f32) return "float32";
  if (mix == QuantMix::f16) return "float16";
  if (mix == QuantMix::bf16) return "bfloat16";
  return std::nullopt;
}

}  // namespace

std::vector<SideFile> artifact_files(const ModelSource& source) {
  std::vector<SideFile> files;
  add_tokenizer(files, source);
  if (source.gguf())
    files.push_back(
        {"tokenizer.gguf",
         layout_gguf("tokenizer.gguf", gguf_pairs(*source.gguf(), QuantMix::keep), {}).files.front().header});
  add_chat_template(files, source, true);
  add_json(files, "config.json", source.config());
  add_json(files, "generation_config.json", source.generation_config());
  return files;
}

std::vector<SideFile> huggingface_files(const ModelSource& source, QuantMix mix) {
  if (!source.config().is_object())
    fail(ErrorCode::unsupported,
         "{}: a safetensors folder needs config.json, and this {} model has none; convert to an artifact or GGUF",
         source.path().string(), to_string(source.format()));
  std::vector<SideFile> files;
  add_tokenizer(files, source);
  add_chat_template(files, source, false);
  Json config = source.config();
  if (const auto dtype = torch_dtype(mix))
    for (const char* key : {"dtype", "torch_dtype"})
      if (config.contains(key)) config[key] = *dtype;
  add_json(files, "config.json", config);
  add_json(files, "generation_config.json", source.generation_config());
  return files;
}

GgufPairs gguf_pairs(const GgufMetadata& metadata, QuantMix mix) {
  GgufPairs pairs(metadata);
  for (const char* key : {"split.no", "split.count", "split.tensors.count", "general.alignment"}) pairs.remove(key);
  if (mix == QuantMix::keep) return pairs;
  if (const auto type = gguf_file_type(mix, {})) pairs.set_u32("general.file_type", *type);
  pairs.set_u32("general.quantization_version", kGgufQuantizationVersion);
  return pairs;
}

}  // namespace candor
