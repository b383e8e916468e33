// Roles from names, by the original converter's rules (first that fits, on the lower-cased name).
#include <algorithm>
#include <array>
#include <string>

#include "formats/manifest.h"

namespace candor {
namespace {

constexpr std::array<std::string_view, 7> kEmbeddings = {
    "embed_tokens.weight", "token_embd.weight", "token_embedding.weight", "position_embedding.weight",
    "shared.weight",       "wte.weight",        "word_embeddings"};
constexpr std::array<std::string_view, 28> kMatrices = {
    "q_proj.weight",    "k_proj.weight",      "v_proj.weight",    "o_proj.weight",       "qkv_proj.weight",
    "gate_proj.weight", "up_proj.weight",     "down_proj.weight", "gate_up_proj.weight", "in_proj.weight",
    "out_proj.weight",  "w1.weight",          "w2.weight",        "w3.weight",           "wq.weight",
    "wk.weight",        "wv.weight",          "wo.weight",        "attn_q.weight",       "attn_k.weight",
    "attn_v.weight",    "attn_output.weight", "attn_qkv.weight",  "ffn_gate.weight",     "ffn_up.weight",
    "ffn_down.weight",  "fc1.weight",         "fc2.weight"};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// "expert" or "experts" followed by a dot or underscore, and GGUF's stacked experts.
bool names_expert(std::string_view name) {
  for (const std::string_view part : {"expert.", "expert_", "experts.", "experts_", "_exps."})
    if (contains(name, part)) return true;
  return false;
}

}  // namespace

std::string_view tensor_role(std::string_view original) {
  std::string name(original);
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const auto in_name = [&](std::string_view part) { return contains(name, part); };
  const auto ends_name = [&](std::string_view part) { return name.ends_with(part); };
  if (std::any_of(kEmbeddings.begin(), kEmbeddings.end(), in_name)) return "embedding";
  if (in_name("lm_head") || (ends_name("output.weight") && !in_name("attn_"))) return "lm_head";
  if (in_name("shared_expert") || names_expert(name)) return "expert";
  if (in_name("router") || in_name("block_sparse_moe.gate") || in_name("moe.gate")) return "router";
  if (std::any_of(kMatrices.begin(), kMatrices.end(), ends_name)) return "matmul";
  if (in_name("norm") || in_name("ln_")) return "norm";
  return "other";
}

}  // namespace candor
