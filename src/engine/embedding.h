// Texts as vectors, and documents ranked for a query. Models that score a pair (a classifier of one label) rank by that
// score; models that embed rank by the cosine of query and document. Not a goal: prompts that an embedding model wants
// before its texts; they are part of the text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace candor {

/// Tokens of a prefill chunk that suit embedding models: a text must fit one, and most such models hold no more.
inline constexpr std::uint32_t kTextTokens = 2048;

struct TextVector {
  std::vector<float> values;
  std::size_t tokens = 0;
};

/// Throws as Session::embedding and Tokenizer::encode do.
[[nodiscard]] TextVector embed_text(Engine& engine, std::string_view text);

enum class RankMethod : std::uint8_t { score, cosine };

[[nodiscard]] std::string_view to_string(RankMethod method);

struct RankedDocument {
  std::size_t index = 0;  ///< into the documents given
  double score = 0;
};

struct Ranking {
  RankMethod method = RankMethod::score;
  std::vector<RankedDocument> documents;  ///< best first, equal ones as given
};

[[nodiscard]] Ranking rank_documents(Engine& engine, std::string_view query, std::span<const std::string> documents);

}  // namespace candor
