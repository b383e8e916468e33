#include "engine/embedding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace candor {
namespace {

/// Columns of what the plan's last step writes.
std::uint32_t result_columns(Engine& engine) {
  const ProgramPhase& phase = engine.model().program().phase(Phase::prefill);
  if (phase.instructions.empty()) fail(ErrorCode::plan, "the plan has no prefill steps");
  return phase.values[phase.instructions.back().result].cols;
}

/// [CLS] query [SEP] document [SEP], the document and its [SEP] of type 1.
double score_pair(Engine& engine, const std::vector<std::uint32_t>& query, std::string_view document) {
  std::vector<std::uint32_t> tokens = query;
  // The post-processor wraps a single text; what it puts first is the query's already.
  const std::vector<std::uint32_t> second = engine.tokenizer().encode(document);
  if (second.empty() || query.empty() || second.front() != query.front())
    fail(ErrorCode::unsupported, "the tokenizer does not put one special token before a text, so pairs are not scored");
  tokens.insert(tokens.end(), second.begin() + 1, second.end());
  std::vector<std::uint32_t> types(query.size(), 0);
  types.resize(tokens.size(), 1);
  return double{engine.session().embedding(tokens, types).front()};
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0;
  double a_squares = 0;
  double b_squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * double{b[i]};
    a_squares += double{a[i]} * double{a[i]};
    b_squares += double{b[i]} * double{b[i]};
  }
  const double lengths = std::sqrt(a_squares) * std::sqrt(b_squares);
  return lengths > 0 ? product / lengths : 0;
}

}  // namespace

TextVector embed_text(Engine& engine, std::string_view text) {
  const std::vector<std::uint32_t> tokens = engine.encode_raw(text);
  return {engine.session().embedding(tokens), tokens.size()};
}

std::string_view to_string(RankMethod method) {
  return method == RankMethod::score ? "score" : "cosine";
}

Ranking rank_documents(Engine& engine, std::string_view query, std::span<const std::string> documents) {
  Ranking ranking;
  ranking.method = result_columns(engine) == 1 ? RankMethod::score : RankMethod::cosine;
  const std::vector<std::uint32_t> query_tokens = engine.tokenizer().encode(query);
  std::vector<float> query_vector;
  if (ranking.method == RankMethod::cosine) query_vector = engine.session().embedding(query_tokens);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const double score = ranking.method == RankMethod::score
                             ? score_pair(engine, query_tokens, documents[i])
                             : cosine(query_vector, embed_text(engine, documents[i]).values);
    ranking.documents.push_back({i, score});
  }
  std::stable_sort(ranking.documents.begin(), ranking.documents.end(),
                   [](const RankedDocument& a, const RankedDocument& b) { return a.score > b.score; });
  return ranking;
}

}  // namespace candor
