#include "cli/run_report.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "cli/output.h"

namespace candor::cli {
namespace {

/// Tokens that decoding computed: prefill yields the first, and the stop token is computed but not delivered.
std::size_t decoded_tokens(const TextResult& result) {
  const std::size_t sampled = result.tokens.size() + (result.reason == runtime::StopReason::stop_token ? 1 : 0);
  return sampled > 0 ? sampled - 1 : 0;
}

std::optional<double> rate(double amount, double seconds) {
  if (amount <= 0 || seconds <= 0) return std::nullopt;
  return amount / seconds;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::optional<double> RunReport::prefill_rate() const {
  return rate(result.prompt_tokens - result.cached_tokens, result.prefill_seconds);
}

std::optional<double> RunReport::decode_rate() const {
  return rate(static_cast<double>(decoded_tokens(result)), result.decode_seconds);
}

std::optional<double> RunReport::bandwidth_share() const {
  const auto decode = decode_rate();
  if (!decode || memory_bandwidth <= 0 || !engine.model().backend().in_main_memory()) return std::nullopt;
  return *decode * static_cast<double>(result.bytes_per_token) / memory_bandwidth;
}

std::uint64_t cache_bytes() {
  long largest = 0;
  for (const int level : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    largest = std::max(largest, ::sysconf(level));
  return static_cast<std::uint64_t>(largest);
}

std::string describe_bandwidth(double share, std::uint64_t bytes_per_token) {
  if (share > 1 && bytes_per_token <= cache_bytes()) return "fits the cache";
  return fmt::format("{:.0f} %", share * 100);
}

std::string describe_stop(const TextResult& result) {
  switch (result.reason) {
    case runtime::StopReason::stop_token:
      return "ended by " + printable(result.stop);
    case runtime::StopReason::caller:
      return fmt::format("ended by the stop string \"{}\"", printable(result.stop));
    case runtime::StopReason::length:
      return "cut at --max-tokens";
    case runtime::StopReason::context:
      return "cut where the context is full";
    case runtime::StopReason::cancelled:
      return "stopped";
  }
  return "stopped";
}

std::string RunReport::line() const {
  std::vector<std::string> parts;
  std::string prompt = "prompt " + counted(result.prompt_tokens, "token");
  if (result.cached_tokens > 0) prompt += fmt::format(", {} of them known", result.cached_tokens);
  if (const auto speed = prefill_rate()) prompt += fmt::format(" ({}/s)", short_number(*speed));
  parts.push_back(std::move(prompt));
  std::string answer = "answer " + counted(result.tokens.size(), "token");
  if (const auto speed = decode_rate()) answer += fmt::format(" ({}/s)", short_number(*speed));
  parts.push_back(answer + ", " + describe_stop(result));
  std::string memory = format_bytes(result.bytes_per_token) + " read a token";
  if (const auto share = bandwidth_share()) {
    const std::string described = describe_bandwidth(*share, result.bytes_per_token);
    memory += described.ends_with('%') ? fmt::format(" ({} of {:.1f} GB/s)", described, memory_bandwidth / 1e9)
                                       : fmt::format(" ({})", described);
  }
  parts.push_back(std::move(memory));
  parts.push_back("plan " + short_digest(engine.model().compiled().plan_digest));
  parts.push_back(fmt::format("seed {}", sampler.seed));
  return fmt::format("{}", fmt::join(parts, " · "));
}

Json RunReport::to_json(const std::string& prompt) const {
  const runtime::CompiledModel& compiled = engine.model().compiled();
  return {{"text", result.text},
          {"tokens", result.tokens},
          {"stop", {{"reason", runtime::to_string(result.reason)}, {"text", result.stop}}},
          {"prompt", {{"text", prompt}, {"tokens", result.prompt_tokens}, {"cached", result.cached_tokens}}},
          {"seed", sampler.seed},
          {"sampler",
           {{"temperature", sampler.temperature},
            {"topK", sampler.top_k},
            {"topP", sampler.top_p},
            {"minP", sampler.min_p},
            {"repetitionPenalty", sampler.repetition_penalty},
            {"repetitionWindow", sampler.repetition_window}}},
          {"stats",
           {{"prefillSeconds", result.prefill_seconds},
            {"prefillTokensPerSecond", number_or_null(prefill_rate())},
            {"decodeSeconds", result.decode_seconds},
            {"decodeTokensPerSecond", number_or_null(decode_rate())},
            {"bytesPerToken", result.bytes_per_token},
            {"memoryBandwidth", memory_bandwidth > 0 ? Json(memory_bandwidth) : Json()},
            {"bandwidthShare", number_or_null(bandwidth_share())}}},
          {"manifestDigest", compiled.manifest_digest},
          {"planDigest", compiled.plan_digest},
          {"tokenizerDigest", engine.tokenizer().digest()},
          {"verification", engine.verification().to_json()},
          {"backend", engine.model().backend().describe()}};
}

}  // namespace candor::cli
