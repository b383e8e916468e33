#include "formats/quant_mix.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string>

#include "formats/manifest.h"

namespace candor {
namespace {

/// An encoding's number in llama.cpp's enum llama_ftype; of the K-quants their M mixes.
std::optional<std::uint32_t> file_type_number(Encoding encoding) {
  switch (encoding) {
    case Encoding::f32:
      return 0;
    case Encoding::f16:
      return 1;
    case Encoding::q4_0:
      return 2;
    case Encoding::q4_1:
      return 3;
    case Encoding::q8_0:
      return 7;
    case Encoding::q5_0:
      return 8;
    case Encoding::q5_1:
      return 9;
    case Encoding::q4_k:
      return 15;
    case Encoding::q5_k:
      return 17;
    case Encoding::q6_k:
      return 18;
    case Encoding::bf16:
      return 32;
    default:
      return std::nullopt;
  }
}

/// What most matrices of a mix have.
Encoding base_encoding(QuantMix mix, std::span<const TensorInfo> tensors) {
  switch (mix) {
    case QuantMix::f32:
      return Encoding::f32;
    case QuantMix::f16:
      return Encoding::f16;
    case QuantMix::bf16:
      return Encoding::bf16;
    case QuantMix::q8_0:
      return Encoding::q8_0;
    case QuantMix::q6_k:
      return Encoding::q6_k;
    case QuantMix::q5_k_m:
      return Encoding::q5_k;
    case QuantMix::q4_k_m:
      return Encoding::q4_k;
    case QuantMix::keep:
      break;
  }
  std::map<Encoding, std::uint64_t> bytes;
  for (const TensorInfo& tensor : tensors) bytes[tensor.encoding] += tensor.bytes;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? Encoding::f32 : most->first;
}

struct MixName {
  std::string_view name;
  QuantMix mix;
};
constexpr std::array kMixes = std::to_array<MixName>({{"keep", QuantMix::keep},
                                                      {"f32", QuantMix::f32},
                                                      {"f16", QuantMix::f16},
                                                      {"bf16", QuantMix::bf16},
                                                      {"q8_0", QuantMix::q8_0},
                                                      {"q6_k", QuantMix::q6_k},
                                                      {"q5_k_m", QuantMix::q5_k_m},
                                                      {"q4_k_m", QuantMix::q4_k_m}});

bool contains_any(std::string_view name, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

constexpr std::array<std::string_view, 3> kValueNames = {"v_proj.weight", "attn_v.weight", "attention.wv.weight"};
constexpr std::array<std::string_view, 7> kDownNames = {"down_proj",  "ffn_down",   ".w2.weight",   "fc2.weight",
                                                        "mlp.c_proj", "mlp.fc_out", "dense_4h_to_h"};
constexpr std::array<std::string_view, 4> kFusedNames = {"qkv_proj.weight", "attn_qkv.weight", "c_attn.weight",
                                                         "query_key_value.weight"};
/// Tables and kernels that are added or slid, not multiplied by rows.
constexpr std::array<std::string_view, 8> kKeptNames = {"position_emb", "position_embd", "wpe.weight", "token_types",
                                                        "token_type",   "pos_emb",       "conv",       "rope_freqs"};

/// The number after "layers.", "blk.", "h." or "layer.", if the name has one.
std::optional<std::uint32_t> layer_of(std::string_view name) {
  for (const std::string_view prefix : {"layers.", "blk.", "layer.", "h."}) {
    for (std::size_t at = name.find(prefix); at != std::string_view::npos; at = name.find(prefix, at + 1)) {
      if (at != 0 && name[at - 1] != '.') continue;
      const char* begin = name.data() + at + prefix.size();
      std::uint32_t layer = 0;
      const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
      if (error == std::errc{} && end != begin) return layer;
    }
  }
  return std::nullopt;
}

bool is_matrix(const TensorInfo& tensor, std::string_view role) {
  if (tensor.shape.size() < 2 || role == "norm" || role == "router") return false;
  if (contains_any(tensor.name, kKeptNames)) return false;
  return tensor.name.ends_with("weight") || role == "expert";
}

class Chooser {
 public:
  Chooser(QuantMix mix, std::span<const TensorInfo> tensors) : mix_(mix) {
    for (const TensorInfo& tensor : tensors) {
      if (const auto layer = layer_of(tensor.name)) layers_ = std::max(layers_, *layer + 1);
      if (tensor_role(tensor.name) == "lm_head") tied_ = false;
    }
  }

  [[nodiscard]] Encoding choose(const TensorInfo& tensor) const {
    if (mix_ == QuantMix::keep) return tensor.encoding;
    const std::string_view role = tensor_role(tensor.name);
    if (!is_matrix(tensor, role)) return Encoding::f32;
    return fit_rows(wanted(tensor, role), tensor.shape.back());
  }

 private:
  [[nodiscard]] Encoding wanted(const TensorInfo& tensor, std::string_view role) const {
    const Encoding base = base_encoding(mix_, {});
    if (mix_ == QuantMix::q5_k_m) return mixed(tensor, role, base, Encoding::q6_k);
    if (mix_ == QuantMix::q4_k_m) return mixed(tensor, role, base, Encoding::q5_k);
    return base;
  }

  [[nodiscard]] Encoding mixed(const TensorInfo& tensor, std::string_view role, Encoding base, Encoding fused) const {
    if (role == "lm_head" || (role == "embedding" && tied_)) return Encoding::q6_k;
    if (contains_any(tensor.name, kFusedNames)) return fused;
    const bool sensitive = contains_any(tensor.name, kValueNames) || contains_any(tensor.name, kDownNames);
    const auto layer = layer_of(tensor.name);
    return sensitive && layer && gets_more_bits(*layer) ? Encoding::q6_k : base;
  }

  /// The first and last eighth of the layers, and every third between.
  [[nodiscard]] bool gets_more_bits(std::uint32_t layer) const {
    const std::uint32_t eighth = layers_ / 8;
    return layer < eighth || layer >= 7 * layers_ / 8 || (layer - eighth) % 3 == 2;
  }

  static Encoding fit_rows(Encoding wanted, std::uint64_t cols) {
    if (cols % info(wanted).block_size == 0) return wanted;
    return cols % info(Encoding::q8_0).block_size == 0 ? Encoding::q8_0 : Encoding::f16;
  }

  QuantMix mix_;
  std::uint32_t layers_ = 0;
  bool tied_ = true;
};

}  // namespace

std::string_view to_string(QuantMix mix) {
  return kMixes[static_cast<std::size_t>(mix)].name;
}

std::optional<QuantMix> parse_quant_mix(std::string_view name) {
  const auto found =
      std::find_if(kMixes.begin(), kMixes.end(), [&](const MixName& entry) { return entry.name == name; });
  if (found == kMixes.end()) return std::nullopt;
  return found->mix;
}

std::optional<std::uint32_t> gguf_file_type(QuantMix mix, std::span<const TensorInfo> tensors) {
  return file_type_number(base_encoding(mix, tensors));
}

std::vector<Encoding> choose_encodings(QuantMix mix, std::span<const TensorInfo> tensors) {
  const Chooser chooser(mix, tensors);
  std::vector<Encoding> encodings;
  encodings.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) encodings.push_back(chooser.choose(tensor));
  return encodings;
}

}  // namespace candor
