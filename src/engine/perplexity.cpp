#include "engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace candor {
namespace {

constexpr std::uint32_t kDefaultWindow = 512;

/// -log of the probability that a row of logits gives `token`, in double.
double surprise(std::span<const float> logits, std::uint32_t token) {
  const double largest = double{*std::max_element(logits.begin(), logits.end())};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return std::log(sum) + largest - double{logits[token]};
}

}  // namespace

double Perplexity::nats_per_token() const {
  return nats / static_cast<double>(tokens);
}

double Perplexity::per_token() const {
  return std::exp(nats_per_token());
}

double Perplexity::bits_per_byte() const {
  return nats / std::numbers::ln2 / static_cast<double>(bytes);
}

Perplexity perplexity(Engine& engine, std::span<const std::uint32_t> tokens, std::uint64_t bytes,
                      std::uint64_t bytes_of_first, const PerplexityOptions& options) {
  const std::uint32_t context = engine.model().context();
  Perplexity result;
  result.window = options.window != 0 ? options.window : std::min(context, kDefaultWindow);
  result.stride = options.stride != 0 ? options.stride : std::max(1u, result.window / 2);
  if (tokens.size() < 2)
    fail(ErrorCode::usage, "the text has {} tokens; at least two are needed, one to predict the other", tokens.size());
  if (bytes <= bytes_of_first) fail(ErrorCode::usage, "the text has no bytes after its first token");
  if (result.window < 2 || result.window > context)
    fail(ErrorCode::usage, "a window of {} tokens is not within 2 and the context of {}", result.window, context);
  if (result.stride >= result.window)
    fail(ErrorCode::usage, "a stride of {} tokens leaves nothing of a window of {} to predict from", result.stride,
         result.window);
  result.tokens = tokens.size() - 1;
  result.bytes = bytes - bytes_of_first;
  const std::size_t vocabulary = engine.model().compiled().vocabulary;
  std::size_t scored = 1;  // tokens before this one are done; the first is never predicted
  for (std::size_t begin = 0; scored < tokens.size(); begin += result.stride) {
    const std::size_t end = std::min<std::size_t>(tokens.size(), begin + result.window);
    runtime::Sequence sequence;
    try {
      // The last token of a window predicts one beyond it, which the next window scores.
      engine.session().logits(sequence, tokens.subspan(begin, end - 1 - begin),
                              [&](std::uint32_t first, std::span<const float> rows, std::uint32_t count) {
                                for (std::uint32_t r = 0; r < count; ++r) {
                                  const std::size_t predicted = begin + first + r + 1;
                                  if (predicted < scored) continue;
                                  result.nats += surprise(rows.subspan(r * vocabulary, vocabulary), tokens[predicted]);
                                }
                              });
    } catch (...) {
      engine.session().truncate(sequence, 0);
      throw;
    }
    engine.session().truncate(sequence, 0);
    scored = end;
    if (options.progress) options.progress(scored - 1, result.tokens);
  }
  if (!std::isfinite(result.nats)) fail(ErrorCode::plan, "the logits are not finite, so there is no perplexity");
  return result;
}

Perplexity perplexity_of_text(Engine& engine, std::string_view text, const PerplexityOptions& options) {
  const Tokenizer& tokenizer = engine.tokenizer();
  const std::vector<std::uint32_t> tokens = tokenizer.encode(text, {.add_special = true, .parse_special = false});
  if (tokens.empty()) fail(ErrorCode::usage, "the text is empty");
  const bool bos = tokenizer.bos_id() && tokens.front() == *tokenizer.bos_id();
  return perplexity(engine, tokens, text.size(), bos ? 0 : tokenizer.token_bytes(tokens.front()).size(), options);
}

}  // namespace candor
