// Candor's public API: open a model, see the plan, generate text, read logits. Everything a model executes stands in
// its plan; nothing runs that the plan does not name. Link `candor::candor` (find_package(candor)).
//
//   candor::Model model = candor::Model::open("models/lexicon-26m");
//   candor::Answer answer = model.chat({{"user", "Define lighthouse."}});
//   std::puts(answer.text.c_str());
//
// Failures are candor::Error (candor/error.h). A Model may be moved but not copied, and is used by one thread at a
// time; it computes on as many threads as Options::threads says, with the same bits whatever their number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "candor/error.h"

namespace candor {

/// The library's version, "major.minor.patch".
[[nodiscard]] std::string_view version();

struct Options {
  unsigned threads = 0;       ///< worker threads; 0: one for each processor the process may use
  std::uint32_t context = 0;  ///< positions of a sequence; 0: the model's own maximum, at most 4096
  std::string
      kernel_path;  ///< id or JSON file of a kernel path; empty: the default. Not for artifacts, which pin theirs
  /// Positions of earlier prompts and answers that are kept, so that a prompt which begins as one of them is computed
  /// from where they part; no bit of an answer changes. 0: none. Needs session kvcache.layout "paged".
  std::uint32_t prefix_positions = 0;
  std::string session;          ///< JSON object laid over the plan's session, such as {"kvcache": {"kvDtype": "f16"}}
  std::string execution_patch;  ///< JSON object {set, remove, add} applied to the plan's steps
  bool all_logits = false;      ///< compile the plan for logits(): all rows, no sampling. Such a model cannot generate
};

struct Sampling {
  float temperature = 0;                 ///< 0: greedy
  std::uint32_t top_k = 0;               ///< keep the k likeliest; 0: all
  float top_p = 1;                       ///< keep the likeliest until their sum reaches p; 1: all
  float min_p = 0;                       ///< keep those at least min_p as likely as the likeliest; 0: all
  float repetition_penalty = 1;          ///< divides positive logits of recent tokens, multiplies others; 1: none
  std::uint32_t repetition_window = 64;  ///< how many tokens are recent
  std::uint64_t seed = 0;                ///< the same seed gives the same answer
};

struct Request {
  std::uint32_t max_tokens = 0;  ///< 0: until a stop or the end of the context
  Sampling sampling;
  std::vector<std::string> stop;  ///< texts that end the answer and are not part of it
  /// Called with each piece of the answer, whole characters only; return false to stop.
  std::function<bool(std::string_view)> on_text;
};

struct Message {
  std::string role;  ///< as the model's template wants: "system", "user", "assistant"
  std::string content;
};

struct Answer {
  std::string text;
  std::vector<std::uint32_t> tokens;  ///< the generated ids, without the stop token
  std::string stop_reason;            ///< "stop_token", "stop_string", "length", "context", "cancelled"
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  ///< of these, how many were not computed again (Options::prefix_positions)
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

class Model {
 public:
  /// Opens a GGUF file, a Hugging Face folder or an artifact, compiles and binds its plan, and loads the weights.
  [[nodiscard]] static Model open(const std::filesystem::path& path, const Options& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// "sha256:…" over the canonical form of the plan.
  [[nodiscard]] const std::string& plan_digest() const;
  /// The compiled plan as canonical JSON.
  [[nodiscard]] std::string plan_json() const;
  /// Instructions, buffers, weights and memory as JSON.
  [[nodiscard]] std::string program_json() const;

  [[nodiscard]] std::uint64_t vocabulary_size() const;
  [[nodiscard]] std::uint32_t context() const;

  /// Token ids of a text; `special` adds what the tokenizer adds by itself (BOS).
  [[nodiscard]] std::vector<std::uint32_t> tokenize(std::string_view text, bool special = true) const;
  [[nodiscard]] std::string detokenize(std::span<const std::uint32_t> tokens) const;

  /// Answers a conversation through the model's own chat template.
  [[nodiscard]] Answer chat(const std::vector<Message>& messages, const Request& request = {});
  /// Continues token ids.
  [[nodiscard]] Answer generate(std::span<const std::uint32_t> prompt, const Request& request = {});

  /// Logits of every position, [tokens, vocabulary] row-major. Needs Options::all_logits.
  [[nodiscard]] std::vector<float> logits(std::span<const std::uint32_t> tokens);

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace candor
