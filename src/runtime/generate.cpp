#include "runtime/generate.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace candor::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Holds tokens back until the next read-back, in a ring of the size that the decode loop's settings say.
class Delivery {
 public:
  Delivery(const GenerationRequest& request, const DecodeLoop& loop, GenerationResult& result,
           const std::function<bool(std::uint32_t)>& on_token)
      : request_(request), loop_(loop), result_(result), on_token_(on_token) {
    pending_.reserve(std::size_t{loop.ring_tokens} * loop.batch_size);
  }

  /// True once the generation has ended.
  bool take(std::uint32_t token) {
    pending_.push_back(token);
    const bool full = request_.max_tokens != 0 && result_.tokens.size() + pending_.size() >= request_.max_tokens;
    const bool stop = loop_.stop_check_per_token && is_stop(token);
    if (pending_.size() < loop_.tokens_between_reads() && !full && !stop) return false;
    return deliver() || (full && end(StopReason::length));
  }

  /// Delivers what is held back; true if it ended the generation.
  bool deliver() {
    for (const std::uint32_t token : pending_) {
      if (is_stop(token)) {
        result_.stop_token = token;
        return end(StopReason::stop_token);
      }
      result_.tokens.push_back(token);
      if (on_token_ && !on_token_(token)) return end(StopReason::caller);
    }
    pending_.clear();
    return false;
  }

  /// Tokens taken so far.
  [[nodiscard]] std::size_t waiting() const { return result_.tokens.size() + pending_.size(); }

  bool end(StopReason reason) {
    pending_.clear();
    result_.reason = reason;
    return true;
  }

 private:
  [[nodiscard]] bool is_stop(std::uint32_t token) const {
    return std::find(request_.stop_tokens.begin(), request_.stop_tokens.end(), token) != request_.stop_tokens.end();
  }

  const GenerationRequest& request_;
  const DecodeLoop& loop_;
  GenerationResult& result_;
  const std::function<bool(std::uint32_t)>& on_token_;
  std::vector<std::uint32_t> pending_;
};

/// How many tokens may be decoded before one is looked at: those of a batch, where stop tokens are looked for a batch
/// at a time, as far as the context, the limit and the backend go.
std::uint32_t tokens_ahead(const Session& session, const Sequence& sequence, const GenerationRequest& request,
                           std::size_t had) {
  const DecodeLoop& loop = session.decode_loop();
  if (loop.stop_check_per_token) return 1;
  std::uint64_t most = std::min(loop.batch_size, session.most_ahead(sequence));
  most = std::min<std::uint64_t>(most, session.context() - sequence.tokens.size());
  if (request.max_tokens != 0) most = std::min<std::uint64_t>(most, request.max_tokens - had);
  return static_cast<std::uint32_t>(most);
}

/// Submits batches until as many are under way as the ring has room for. Those of a batch size of one are not: each
/// token is looked at before the next.
void submit_ahead(Session& session, Sequence& sequence, std::uint32_t token, const GenerationRequest& request,
                  std::size_t had) {
  while (session.submissions() < session.decode_loop().ring_staging) {
    const std::uint32_t ahead = tokens_ahead(session, sequence, request, had + session.tokens_ahead());
    if (ahead == 0 || (ahead == 1 && session.submissions() == 0)) return;
    session.submit_ahead(sequence, token, ahead);
  }
}

/// What was submitted is waited for, however a generation ends.
struct DropAhead {
  Session& session;
  ~DropAhead() { session.drop_ahead(); }
};

}  // namespace

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::stop_token:
      return "stop_token";
    case StopReason::caller:
      return "stop_string";
    case StopReason::length:
      return "length";
    case StopReason::context:
      return "context";
    case StopReason::cancelled:
      return "cancelled";
  }
  return "length";
}

GenerationResult generate(Session& session, Sequence& sequence, const GenerationRequest& request,
                          const std::function<bool(std::uint32_t)>& on_token) {
  GenerationResult result;
  result.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
  Delivery delivery(request, session.decode_loop(), result, on_token);
  const std::size_t before = sequence.tokens.size();
  const auto started = Clock::now();
  std::uint32_t token = session.prefill(sequence, request.prompt, request.cancelled);
  result.prefill_seconds = seconds_since(started);

  const auto decoding = Clock::now();
  const DropAhead drop{session};
  while (!delivery.take(token)) {
    if (request.cancelled && request.cancelled()) {
      if (!delivery.deliver()) delivery.end(StopReason::cancelled);
      break;
    }
    if (session.submissions() == 0 && sequence.tokens.size() >= session.context()) {
      if (!delivery.deliver()) delivery.end(StopReason::context);
      break;
    }
    submit_ahead(session, sequence, token, request, delivery.waiting());
    if (session.submissions() > 0) {
      const std::vector<std::uint32_t> tokens = session.collect_ahead(sequence);
      if (std::any_of(tokens.begin(), tokens.end() - 1, [&](std::uint32_t next) { return delivery.take(next); })) break;
      token = tokens.back();
      continue;
    }
    Sequence* const one = &sequence;
    token = session.decode({&one, 1}, {&token, 1}).front();
  }
  session.drop_ahead();
  result.decode_seconds = seconds_since(decoding);
  // Tokens computed past the stop are no part of the sequence.
  session.truncate(sequence, static_cast<std::uint32_t>(before + request.prompt.size() + result.tokens.size()));
  return result;
}

}  // namespace candor::runtime
