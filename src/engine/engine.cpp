#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"
#include "text/detokenizer.h"

namespace candor {
namespace {

std::string token_text(const Tokenizer& tokenizer, std::optional<std::uint32_t> id) {
  return id ? std::string(tokenizer.token(*id)) : std::string();
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const ModelSource& source) {
  const std::string label = source.tokenizer_label();
  if (const GgufMetadata* gguf = source.gguf()) {
    const auto model = gguf->string("tokenizer.ggml.model");
    if (!model || *model == "none" || *model == "no_vocab") return nullptr;
    return load_tokenizer_gguf(*gguf, label);
  }
  if (source.tokenizer_json())
    return load_tokenizer_json(*source.tokenizer_json(), source.tokenizer_config().value_or(""), label);
  if (source.sentencepiece_model())
    return load_sentencepiece_model(std::as_bytes(std::span(*source.sentencepiece_model())), label);
  return nullptr;
}

Engine::Engine(const std::filesystem::path& path, const EngineOptions& options) {
  runtime::PlanOptions plan = options.plan;
  if (plan.context == 0) plan.context = options.load.context;
  runtime::CompiledModel compiled = runtime::compile_model(path, plan);
  if (options.verify != VerifyMode::header) {
    ThreadPool pool(options.load.threads);
    verification_ = verify_for_loading(compiled.source, options.verify, pool);
  }
  tokenizer_ = load_tokenizer(compiled.source);
  if (tokenizer_ && tokenizer_->vocabulary_size() > compiled.vocabulary)
    fail(ErrorCode::format, "{}: the tokenizer has {} tokens, the model only {} rows for them", path.string(),
         tokenizer_->vocabulary_size(), compiled.vocabulary);
  if (compiled.source.chat_template())
    template_.emplace(*compiled.source.chat_template(), compiled.source.chat_template_label());
  model_ = std::make_unique<runtime::LoadedModel>(std::move(compiled), options.load);
  session_ = std::make_unique<runtime::Session>(*model_);
}

const Tokenizer& Engine::tokenizer() const {
  if (!tokenizer_)
    fail(ErrorCode::unsupported,
         "{}: the model's files hold no tokenizer, so it takes no text; candor logits and candor embed take token ids "
         "(--tokens)",
         model_->compiled().source.path().string());
  return *tokenizer_;
}

std::vector<std::uint32_t> Engine::encode_raw(std::string_view text, bool add_special) const {
  if (!text.empty()) return tokenizer().encode(text, {add_special, true});
  if (const auto bos = tokenizer().bos_id()) return {*bos};
  fail(ErrorCode::usage, "the prompt is empty and the tokenizer has no BOS token to start from; give a prompt");
}

std::string Engine::render_chat(const ChatInput& input) const {
  if (!template_)
    fail(ErrorCode::unsupported, "{}: the model has no chat template; pass the text as it is with --raw",
         model_->compiled().source.path().string());
  Json context = input.variables;
  context["messages"] = input.messages;
  context["add_generation_prompt"] = input.add_generation_prompt;
  if (!input.tools.is_null()) context["tools"] = input.tools;
  if (!input.documents.is_null()) context["documents"] = input.documents;
  const Tokenizer& tokens = tokenizer();
  context["bos_token"] = token_text(tokens, tokens.bos_id());
  context["eos_token"] = token_text(tokens, tokens.eos_id());
  if (tokens.unk_id()) context["unk_token"] = token_text(tokens, tokens.unk_id());
  if (tokens.pad_id()) context["pad_token"] = token_text(tokens, tokens.pad_id());
  return template_->render(context, input.now);
}

std::vector<std::uint32_t> Engine::encode_chat(const ChatInput& input) const {
  return tokenizer().encode(render_chat(input), {.add_special = false, .parse_special = true});
}

TextResult Engine::generate(const TextRequest& request, const std::function<void(std::string_view)>& on_text) {
  runtime::Sequence sequence;
  sequence.sampler = request.sampler;
  StreamDecoder decoder(tokenizer());
  StopMatcher stops(request.stop_strings);
  TextResult result;
  const auto emit = [&](std::string_view text) {
    if (text.empty()) return;
    result.text += text;
    if (on_text) on_text(text);
  };
  const auto on_token = [&](std::uint32_t token) {
    emit(stops.push(decoder.push(token)));
    return !stops.stopped();
  };
  result.cached_tokens = session_->begin(sequence, request.prompt);
  runtime::GenerationRequest generation;
  generation.prompt = std::span(request.prompt).subspan(result.cached_tokens);
  generation.max_tokens = request.max_tokens;
  if (!request.ignore_stop_tokens) generation.stop_tokens = model_->compiled().stop_tokens;
  generation.cancelled = request.cancelled;
  try {
    runtime::GenerationResult generated = runtime::generate(*session_, sequence, generation, on_token);
    if (!stops.stopped()) {
      emit(stops.push(decoder.finish()));
      emit(stops.finish());
    }
    result.tokens = std::move(generated.tokens);
    result.reason = generated.reason;
    result.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
    result.prefill_seconds = generated.prefill_seconds;
    result.decode_seconds = generated.decode_seconds;
    if (generated.reason == runtime::StopReason::stop_token) result.stop = tokenizer().token(generated.stop_token);
  } catch (...) {
    session_->truncate(sequence, 0);
    throw;
  }
  if (stops.matched()) result.stop = *stops.matched();
  result.seed = request.sampler.seed;
  result.bytes_per_token = session_->bytes_per_token(static_cast<std::uint32_t>(sequence.tokens.size()));
  session_->remember(sequence);
  session_->truncate(sequence, 0);
  return result;
}

std::vector<float> Engine::logits(std::span<const std::uint32_t> tokens) {
  runtime::Sequence sequence;
  std::vector<float> out;
  out.reserve(tokens.size() * model_->compiled().vocabulary);
  try {
    session_->logits(sequence, tokens, [&](std::uint32_t, std::span<const float> rows, std::uint32_t) {
      out.insert(out.end(), rows.begin(), rows.end());
    });
  } catch (...) {
    session_->truncate(sequence, 0);
    throw;
  }
  session_->truncate(sequence, 0);
  return out;
}

}  // namespace candor
