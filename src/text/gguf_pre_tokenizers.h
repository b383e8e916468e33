// The pre-tokenizers that GGUF files know by name (tokenizer.ggml.pre). A name stands for patterns, applied one after
// the other, and for a few flags of the vocabulary; the patterns are those of the models' own tokenizer.json files.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace candor::text {

struct GgufPreTokenizer {
  std::string_view name;
  std::span<const std::string_view> patterns;  ///< Oniguruma's syntax; each cuts what the one before it left
  bool ignore_merges = false;                  ///< words that are tokens are taken whole
  bool add_bos = false;                        ///< the default where tokenizer.ggml.add_bos_token is absent
  bool nfc = false;                            ///< text is normalized to NFC
};

/// The pre-tokenizer called `name`. Throws Error(unsupported), naming `label` and the known names.
[[nodiscard]] const GgufPreTokenizer& gguf_pre_tokenizer(std::string_view name, std::string_view label);

/// The first pre-tokenizer that cuts by these patterns with these flags; nullptr if none is known.
[[nodiscard]] const GgufPreTokenizer* find_gguf_pre_tokenizer(std::span<const std::string> patterns, bool ignore_merges,
                                                              bool nfc);

/// GGUF has no key for added tokens that take the white space after them. Phi-3's do, and llama.cpp, which defined the
/// format, knows them by general.name: in files with "phi-3" or "phi3" in it, whatever the case, all special and
/// user-defined tokens do but <unk>, <s> and <|endoftext|>.
[[nodiscard]] bool is_phi3_name(std::string_view general_name);
[[nodiscard]] bool phi3_takes_space_after(std::string_view token);

}  // namespace candor::text
