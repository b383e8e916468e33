#include "models/gguf_export.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "models/config_reader.h"
#include "models/decoder.h"
#include "models/description.h"
#include "models/manifest.h"
#include "models/step_builder.h"

namespace candor::models {
namespace {

/// A family by its model_type, and how its GGUF form differs.
struct GgufForm {
  std::string_view model_type;
  std::string_view architecture;
  bool interleaved_rope = false;  ///< rows of q and k are stored for a rotation of neighbours
  bool has_windows = false;       ///< sliding_window counts, and GGUF has attention.sliding_window for it
};

constexpr GgufForm kForms[] = {{"llama", "llama", true, true},
                               {"mistral", "llama", true, true},
                               {"qwen2", "qwen2", false, false},
                               {"qwen3", "qwen3", false, false}};

const GgufForm& form_of(const ModelSource& source) {
  ConfigReader reader = huggingface_reader(source);
  const std::string type = reader.string("model_type");
  std::string names;
  for (const GgufForm& form : kForms) {
    if (form.model_type == type) return form;
    names += (names.empty() ? "" : ", ") + std::string(form.model_type);
  }
  fail(ErrorCode::unsupported, "{}: the GGUF form of model_type \"{}\" is not known here; known are {}",
       source.path().string(), printable(type), names);
}

/// What the keys of a GGUF file say of the model; the family file has checked the rest of the configuration.
DecoderConfig read_exported(const ModelSource& source, const GgufForm& form) {
  ConfigReader reader = huggingface_reader(source);
  DecoderConfig config;
  read_huggingface_dimensions(reader, config);
  config.norm_eps = reader.number("rms_norm_eps");
  config.tied = reader.boolean("tie_word_embeddings", false);
  const bool windows = form.has_windows || reader.boolean("use_sliding_window", false);
  const std::uint64_t window = windows ? reader.optional_positive("sliding_window").value_or(0) : 0;
  config.attention = {{{}, window, read_huggingface_rope(reader, config)}};
  if (read_activation(reader, "hidden_act") != "silu")
    fail(ErrorCode::unsupported, "{}: hidden_act is not silu, which these GGUF architectures take for granted",
         reader.label());
  return config;
}

std::string at_layer(std::string pattern, std::uint32_t layer) {
  constexpr std::string_view kLayer = "{L}";
  if (const auto at = pattern.find(kLayer); at != std::string::npos)
    pattern.replace(at, kLayer.size(), std::to_string(layer));
  return pattern;
}

/// For each head the halves' rows in turn: 0, d/2, 1, d/2 + 1, …
std::vector<std::uint32_t> interleaved_rows(std::uint64_t heads, std::uint64_t head_dim) {
  std::vector<std::uint32_t> order;
  for (std::uint64_t head = 0; head < heads; ++head)
    for (std::uint64_t i = 0; i < head_dim; ++i)
      order.push_back(static_cast<std::uint32_t>(head * head_dim + i % 2 * (head_dim / 2) + i / 2));
  return order;
}

/// New names and row orders by old name.
using Edits = std::map<std::string, TensorEdit, std::less<>>;

Edits edits_for(const DecoderConfig& config, const GgufForm& form) {
  const DecoderNames from = huggingface_decoder_names();
  const DecoderNames to = gguf_decoder_names();
  std::vector<std::uint32_t> q_rows;
  std::vector<std::uint32_t> k_rows;
  if (form.interleaved_rope) {
    q_rows = interleaved_rows(config.heads, config.head_dim);
    k_rows = interleaved_rows(config.kv_heads, config.head_dim);
  }
  Edits edits;
  const auto add = [&](const std::string& old_name, const std::string& new_name,
                       const std::vector<std::uint32_t>& rows = {}) {
    const bool in_layers = old_name.find("{L}") != std::string::npos;
    for (std::uint32_t layer = 0; layer < (in_layers ? config.layers : 1); ++layer) {
      TensorEdit edit{at_layer(new_name, layer)};
      edit.row_order = rows;
      TensorEdit bias{bias_name(edit.name)};
      bias.row_order = rows;
      const std::string old = at_layer(old_name, layer);
      edits.emplace(bias_name(old), std::move(bias));
      edits.emplace(old, std::move(edit));
    }
  };
  add(from.embed, to.embed);
  add(from.input_norm, to.input_norm);
  add(from.q_proj, to.q_proj, q_rows);
  add(from.k_proj, to.k_proj, k_rows);
  add(from.v_proj, to.v_proj);
  add(from.o_proj, to.o_proj);
  add(from.q_norm, to.q_norm);
  add(from.k_norm, to.k_norm);
  add(from.post_attention_norm, to.post_attention_norm);
  add(from.gate_proj, to.gate_proj);
  add(from.up_proj, to.up_proj);
  add(from.down_proj, to.down_proj);
  add(from.final_norm, to.final_norm);
  if (!config.tied) add(from.lm_head, to.lm_head);
  return edits;
}

/// Vectors are kept in f32, as readers of GGUF expect; what the computation does not read is left out.
std::optional<TensorEdit> edit_of(const Edits& edits, const TensorInfo& tensor) {
  const auto found = edits.find(tensor.name);
  TensorEdit edit = found == edits.end() ? TensorEdit{tensor.name} : found->second;
  edit.left_out = found == edits.end();
  if (tensor.shape.size() == 1) edit.encoding = Encoding::f32;
  return edit;
}

/// Factors that divide the plain frequencies, as rope_freqs.weight holds them.
std::vector<float> frequency_divisors(const RopeTable& rope, std::uint64_t rotary_dim) {
  std::vector<float> divisors;
  for (std::size_t i = 0; i < rope.inverse_frequencies.size(); ++i) {
    const double plain = std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim));
    divisors.push_back(static_cast<float>(plain / static_cast<double>(rope.inverse_frequencies[i])));
  }
  return divisors;
}

class KeyWriter {
 public:
  KeyWriter(GgufPairs& pairs, std::string_view architecture) : pairs_(pairs), prefix_(architecture) {}

  void count(std::string_view key, std::uint64_t value) {
    pairs_.set_u32(fmt::format("{}.{}", prefix_, key), static_cast<std::uint32_t>(value));
  }
  void number(std::string_view key, double value) {
    pairs_.set_f32(fmt::format("{}.{}", prefix_, key), static_cast<float>(value));
  }
  void text(std::string_view key, std::string_view value) {
    pairs_.set_string(fmt::format("{}.{}", prefix_, key), value);
  }

 private:
  GgufPairs& pairs_;
  std::string prefix_;
};

void put_rope(const ModelSource& source, const DecoderConfig& config, KeyWriter& keys, GgufExport& out) {
  const RopeTable& rope = config.attention.front().rope;
  const std::uint64_t rotary_dim = rope.inverse_frequencies.size() * 2;
  keys.count("rope.dimension_count", rotary_dim);
  keys.number("rope.freq_base", rope.theta);
  if (rope.scaling.empty()) return;
  if (rope.scaling == "llama3") {
    out.added.push_back({"rope_freqs.weight", frequency_divisors(rope, rotary_dim)});
    return;
  }
  // Readers of GGUF derive YaRN's magnitude from the factor.
  const double factor = rope.factor.value_or(1);
  const bool usual = rope.scaling == "linear" ||
                     (rope.scaling == "yarn" && rope.original_positions &&
                      std::fabs(rope.attention_scale - (factor <= 1 ? 1 : 0.1 * std::log(factor) + 1)) < 1e-6);
  if (!usual)
    fail(ErrorCode::unsupported, "{}: RoPE scaling \"{}\" with these parameters has no form in GGUF here",
         source.path().string(), rope.scaling);
  keys.text("rope.scaling.type", rope.scaling);
  keys.number("rope.scaling.factor", factor);
  if (rope.original_positions) keys.count("rope.scaling.original_context_length", *rope.original_positions);
  if (rope.beta_fast) keys.number("rope.scaling.yarn_beta_fast", *rope.beta_fast);
  if (rope.beta_slow) keys.number("rope.scaling.yarn_beta_slow", *rope.beta_slow);
}

void put_keys(const ModelSource& source, const DecoderConfig& config, const GgufForm& form, GgufExport& out) {
  out.pairs.set_string("general.architecture", form.architecture);
  out.pairs.set_string("general.type", "model");
  out.pairs.set_string("general.name", source_name(source));
  KeyWriter keys(out.pairs, form.architecture);
  keys.count("block_count", config.layers);
  keys.count("context_length", config.max_positions);
  keys.count("embedding_length", config.hidden);
  keys.count("feed_forward_length", config.intermediate);
  keys.count("attention.head_count", config.heads);
  keys.count("attention.head_count_kv", config.kv_heads);
  keys.count("attention.key_length", config.head_dim);
  keys.count("attention.value_length", config.head_dim);
  keys.number("attention.layer_norm_rms_epsilon", config.norm_eps);
  keys.count("vocab_size", config.vocabulary);
  const std::uint64_t window = config.attention.front().window;
  if (window != 0 && !form.has_windows)
    fail(ErrorCode::unsupported, "{}: sliding_window is {}, for which architecture {} has no key in GGUF",
         source.path().string(), window, form.architecture);
  if (window != 0) keys.count("attention.sliding_window", window);
  put_rope(source, config, keys, out);
}

}  // namespace

GgufExport export_gguf(const ModelSource& source, QuantMix mix) {
  const GgufForm& form = form_of(source);
  (void)describe(source);  // every key of the configuration and every tensor is understood, or refused here
  const DecoderConfig config = read_exported(source, form);
  GgufExport out;
  out.vocabulary = config.vocabulary;
  put_keys(source, config, form, out);
  out.pairs.set_u32("general.quantization_version", kGgufQuantizationVersion);
  if (const auto type = gguf_file_type(mix, source.tensors())) out.pairs.set_u32("general.file_type", *type);
  out.edit = [edits = edits_for(config, form)](const TensorInfo& tensor) { return edit_of(edits, tensor); };
  return out;
}

}  // namespace candor::models
