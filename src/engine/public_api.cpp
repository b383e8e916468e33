#include <utility>

#include "base/error.h"
#include "candor/candor.h"
#include "engine/engine.h"

namespace candor {
namespace {

Json object_option(const std::string& text, const char* name) {
  if (text.empty()) return {};
  Json value = parse_json(text, name);
  if (!value.is_object()) fail(ErrorCode::usage, "{} must be a JSON object", name);
  return value;
}

SamplerParameters sampler_parameters(const Sampling& sampling) {
  SamplerParameters out;
  out.temperature = sampling.temperature;
  out.top_k = sampling.top_k;
  out.top_p = sampling.top_p;
  out.min_p = sampling.min_p;
  out.repetition_penalty = sampling.repetition_penalty;
  out.repetition_window = sampling.repetition_window;
  out.seed = sampling.seed;
  return out;
}

}  // namespace

std::string_view version() {
  return CANDOR_VERSION;
}

struct Model::State {
  Engine engine;
};

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model Model::open(const std::filesystem::path& path, const Options& options) {
  EngineOptions engine;
  engine.plan.kernel_path = options.kernel_path;
  engine.plan.session = object_option(options.session, "Options::session");
  engine.plan.execution_patch = object_option(options.execution_patch, "Options::execution_patch");
  engine.plan.rows = options.all_logits ? runtime::RowSelection::all : runtime::RowSelection::last;
  engine.load.threads = options.threads;
  engine.load.context = options.context;
  engine.load.prefix_positions = options.prefix_positions;
  return Model(std::make_unique<State>(State{Engine(path, engine)}));
}

const std::string& Model::plan_digest() const {
  return state_->engine.model().compiled().plan_digest;
}

std::string Model::plan_json() const {
  return to_canonical_json(state_->engine.model().compiled().plan.to_json());
}

std::string Model::program_json() const {
  return to_js_json(state_->engine.model().program().to_json());
}

std::uint64_t Model::vocabulary_size() const {
  return state_->engine.model().compiled().vocabulary;
}

std::uint32_t Model::context() const {
  return state_->engine.model().context();
}

std::vector<std::uint32_t> Model::tokenize(std::string_view text, bool special) const {
  return state_->engine.tokenizer().encode(text, {special, true});
}

std::string Model::detokenize(std::span<const std::uint32_t> tokens) const {
  return state_->engine.tokenizer().decode(tokens);
}

Answer Model::chat(const std::vector<Message>& messages, const Request& request) {
  ChatInput input;
  for (const Message& message : messages)
    input.messages.push_back({{"role", message.role}, {"content", message.content}});
  return generate(state_->engine.encode_chat(input), request);
}

Answer Model::generate(std::span<const std::uint32_t> prompt, const Request& request) {
  TextRequest text;
  text.prompt.assign(prompt.begin(), prompt.end());
  text.max_tokens = request.max_tokens;
  text.sampler = sampler_parameters(request.sampling);
  text.stop_strings = request.stop;
  bool stopped = false;
  text.cancelled = [&] { return stopped; };
  TextResult result = state_->engine.generate(text, [&](std::string_view piece) {
    if (request.on_text && !request.on_text(piece)) stopped = true;
  });
  return {.text = std::move(result.text),
          .tokens = std::move(result.tokens),
          .stop_reason = std::string(runtime::to_string(result.reason)),
          .prompt_tokens = result.prompt_tokens,
          .cached_tokens = result.cached_tokens,
          .prefill_seconds = result.prefill_seconds,
          .decode_seconds = result.decode_seconds};
}

std::vector<float> Model::logits(std::span<const std::uint32_t> tokens) {
  return state_->engine.logits(tokens);
}

}  // namespace candor
