// A session runs sequences on a loaded model: it owns the KV pages and each sequence's tokens, cuts a prompt into
// prefill chunks, and walks the Program. Whatever the chunks, whatever runs beside a sequence and whoever computed its
// beginning, a token's logits are the same bits. Not a goal: text, stop strings, scheduling.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "kernels/batch.h"
#include "runtime/kv_pages.h"
#include "runtime/loaded_model.h"
#include "runtime/prefix_cache.h"

namespace candor::runtime {

/// One sequence: its tokens so far, all of which have been computed.
struct Sequence {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint32_t> types;  ///< of tokens, for plans that read $types; those beyond its end are 0
  PageTable pages;
  SamplerParameters sampler;
};

class Session {
 public:
  explicit Session(LoadedModel& model);

  /// Appends `tokens` to the sequence and computes them; returns the token sampled after the last one. Throws
  /// Error(resource) with both numbers if they do not fit the context, Error(usage) for an id outside the vocabulary or
  /// no tokens at all, Error(plan) if the plan has no sampling step or the logits were not finite. `cancelled`, if
  /// given, is asked between chunks.
  [[nodiscard]] std::uint32_t prefill(Sequence& sequence, std::span<const std::uint32_t> tokens,
                                      const std::function<bool()>& cancelled = {});

  /// Appends one token to each of several sequences and computes them as one batch; returns a sampled token each.
  /// Throws Error(usage), with every sequence as it was, if one stands there twice or there are more of them than the
  /// Program was laid out for, and as prefill() does.
  [[nodiscard]] std::vector<std::uint32_t> decode(std::span<Sequence* const> sequences,
                                                  std::span<const std::uint32_t> tokens);

  /// Appends `token` and as many more as `count` says, each sampled from the one before, and starts computing them in
  /// one submission. With submissions() that are not collected, `token` is what the last of them will sample last.
  void submit_ahead(Sequence& sequence, std::uint32_t token, std::uint32_t count);
  /// Waits for the oldest submission; returns the tokens it sampled, of which the last is not appended unless another
  /// submission began with it.
  [[nodiscard]] std::vector<std::uint32_t> collect_ahead(Sequence& sequence);
  [[nodiscard]] std::size_t submissions() const { return ahead_.size(); }
  /// Tokens that all submissions together will sample.
  [[nodiscard]] std::size_t tokens_ahead() const;
  /// Waits for all submissions and forgets what they sampled.
  void drop_ahead() noexcept;
  /// The most that one submission computes for this sequence; a repetition penalty needs every token before the next is
  /// drawn.
  [[nodiscard]] std::uint32_t most_ahead(const Sequence& sequence) const;

  /// Appends `tokens` and computes them in one phase: prefill in chunks, decode token by token. What was sampled, if
  /// anything, is not read. `after`, if given, is called after each run with the first of its tokens and their number.
  using AfterRun = std::function<void(std::size_t first, std::size_t count)>;
  void compute(Sequence& sequence, std::span<const std::uint32_t> tokens, Phase phase, const AfterRun& after = {});

  /// Appends `tokens` and calls `rows` after each chunk with the logits of its rows, [rows, vocabulary] float32. The
  /// plan must have been compiled with RowSelection::all.
  using LogitRows = std::function<void(std::uint32_t first_row, std::span<const float> logits, std::uint32_t rows)>;
  void logits(Sequence& sequence, std::span<const std::uint32_t> tokens, const LogitRows& rows);

  /// The vector of a whole text: what the plan's last step writes, one row a sequence. Throws Error(plan) for a plan
  /// that ends otherwise, Error(resource) if the text is longer than a prefill chunk, which must then hold it all.
  [[nodiscard]] std::vector<float> embedding(std::span<const std::uint32_t> tokens,
                                             std::span<const std::uint32_t> types = {});

  /// A sequence that begins as the first `tokens` tokens of another, with its sampler. Nothing is computed: both hold
  /// the same KV pages, and a page in which they part is copied when one of them goes on. Throws Error(plan) if a step
  /// sees later tokens, so that a beginning is not what it would be alone; Error(resource) if layout sliding has
  /// dropped what the next token would see.
  [[nodiscard]] Sequence fork(const Sequence& sequence, std::uint32_t tokens);

  /// Begins an empty sequence with the longest beginning of `tokens` that remember() was told of, in whole pages and
  /// without the last token, whose logits are wanted. Returns how many tokens it has then; without a prefix cache
  /// (LoadOptions::prefix_positions) none.
  std::uint32_t begin(Sequence& sequence, std::span<const std::uint32_t> tokens);
  /// Keeps the sequence's whole pages for those to come, as far as the prefix cache goes.
  void remember(const Sequence& sequence);

  /// Called after every instruction of every run from now on; null ends it.
  void observe(InstructionObserver observer) { observer_ = std::move(observer); }

  /// Forgets the sequence's tokens after the first `tokens`.
  void truncate(Sequence& sequence, std::uint32_t tokens);

  [[nodiscard]] std::uint32_t context() const { return model_.context(); }
  [[nodiscard]] const DecodeLoop& decode_loop() const { return model_.program().decode_loop; }

  /// Bytes of weights and KV cache that decoding one token at this depth reads.
  [[nodiscard]] std::uint64_t bytes_per_token(std::uint32_t depth) const;

 private:
  void append(Sequence& sequence, std::span<const std::uint32_t> tokens);
  void check_batch(std::span<Sequence* const> sequences, std::span<const std::uint32_t> tokens) const;
  void check_fits(const Sequence& sequence, std::span<const std::uint32_t> tokens) const;
  /// Throws Error(plan) if the KV cache of a token depends on later ones.
  void check_causal() const;
  void run(Phase phase, std::span<const Segment> segments, std::span<const std::uint32_t> tokens,
           std::span<const std::uint32_t> positions, std::span<const std::uint32_t> types = {});
  [[nodiscard]] std::vector<std::uint32_t> sampled(Phase phase, std::size_t sequences) const;

  /// Tokens that are being computed: their place in the sequence, and how many.
  struct Ahead {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  LoadedModel& model_;
  KvPages pages_;
  PrefixCache prefixes_;
  InstructionObserver observer_;
  std::deque<Ahead> ahead_;
};

}  // namespace candor::runtime
