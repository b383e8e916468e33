// Receipts of an engine: writing one for what was just computed, and computing what one says again. The file itself is
// runtime/receipt.h. Not a goal: judging; whether digests or tokens differ is told, what to do about it is the
// caller's.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "engine/engine.h"
#include "runtime/receipt.h"

namespace candor {

/// Digests of a compiled model. The weights of an artifact are those of its manifest; the files of other models are
/// hashed whole. `tokenizer` may be null.
[[nodiscard]] runtime::ModelFacts model_facts(const runtime::CompiledModel& model, const Tokenizer* tokenizer,
                                              ThreadPool& pool);

/// The receipt of an answer. `options` are those that the engine was made with.
[[nodiscard]] runtime::Receipt receipt_of(Engine& engine, const EngineOptions& options, const TextRequest& request,
                                          const TextResult& result);
/// The receipt of logits() of `tokens`.
[[nodiscard]] runtime::Receipt receipt_of(Engine& engine, const EngineOptions& options,
                                          std::span<const std::uint32_t> tokens, std::span<const float> logits);

/// Options of an engine that computes what the receipt says. Threads, instruction set, chunks and verification are the
/// caller's to set; they change no bit.
[[nodiscard]] EngineOptions replay_options(const runtime::Receipt& receipt);

struct Replay {
  bool same = false;
  std::size_t compared = 0;                ///< tokens, or positions
  std::optional<std::size_t> first_other;  ///< of the tokens
  std::vector<std::uint32_t> tokens;       ///< what was computed now; of logits nothing
  std::string stop_reason;
  std::string logits;  ///< the digest now
};

/// Computes the receipt's request again and compares the answers. Throws what Engine::generate() and logits() throw.
[[nodiscard]] Replay replay(Engine& engine, const runtime::Receipt& receipt, const std::function<bool()>& cancelled);

}  // namespace candor
