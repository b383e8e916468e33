#include "engine/receipts.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "candor/candor.h"
#include "formats/manifest.h"

namespace candor {
namespace {

using runtime::ModelFacts;
using runtime::Receipt;
using runtime::ReceiptCommand;

std::string sha256_of(std::span<const std::byte> bytes) {
  return "sha256:" + sha256_hex(bytes);
}

void add_weights(ModelFacts& facts, const ModelSource& source, ThreadPool& pool) {
  if (source.format() == SourceFormat::artifact) {
    for (const ManifestShard& shard : manifest_shards(source.manifest()))
      facts.weights[shard.filename] = {shard.size, fmt::format("{}:{}", to_string(shard.algorithm), shard.hash)};
    return;
  }
  const std::vector<MappedFile>& files = source.files();
  std::vector<std::string> digests(files.size());
  pool.parallel_for(static_cast<std::uint32_t>(files.size()),
                    [&](std::uint32_t i, unsigned) { digests[i] = sha256_of(files[i].bytes()); });
  for (std::size_t i = 0; i < files.size(); ++i)
    facts.weights[files[i].path().filename().string()] = {files[i].size(), digests[i]};
}

Receipt receipt_of_model(Engine& engine, const EngineOptions& options) {
  Receipt receipt;
  const runtime::CompiledModel& model = engine.model().compiled();
  receipt.program = version();
  receipt.model_path = std::filesystem::absolute(model.source.path()).lexically_normal().string();
  ThreadPool pool(options.load.threads);
  receipt.model = model_facts(model, engine.has_tokenizer() ? &engine.tokenizer() : nullptr, pool);
  receipt.plan = options.plan;
  if (receipt.plan.context == 0) receipt.plan.context = options.load.context;
  receipt.backend = engine.model().backend().describe();
  receipt.verification = engine.verification().to_json();
  receipt.context = engine.model().context();
  return receipt;
}

TextRequest request_of(const Receipt& receipt) {
  TextRequest request;
  request.prompt = receipt.prompt;
  request.max_tokens = receipt.max_tokens;
  request.sampler = receipt.sampler;
  request.stop_strings = receipt.stop_strings;
  request.ignore_stop_tokens = receipt.ignore_stop_tokens;
  // Where a person stopped the answer, as much of it is computed again as there was.
  if (receipt.stop_reason == to_string(runtime::StopReason::cancelled))
    request.max_tokens = static_cast<std::uint32_t>(std::max<std::size_t>(1, receipt.tokens.size()));
  return request;
}

Replay replay_run(Engine& engine, const Receipt& receipt, const std::function<bool()>& cancelled) {
  TextRequest request = request_of(receipt);
  request.cancelled = cancelled;
  TextResult result = engine.generate(request, {});
  if (result.reason == runtime::StopReason::cancelled)
    fail(ErrorCode::cancelled, "stopped before the answer was whole");
  Replay out;
  const bool was_stopped = receipt.stop_reason == to_string(runtime::StopReason::cancelled);
  if (was_stopped) result.tokens.resize(std::min(result.tokens.size(), receipt.tokens.size()));
  const auto [then, now] =
      std::mismatch(receipt.tokens.begin(), receipt.tokens.end(), result.tokens.begin(), result.tokens.end());
  if (then != receipt.tokens.end() || now != result.tokens.end())
    out.first_other = static_cast<std::size_t>(then - receipt.tokens.begin());
  out.stop_reason = to_string(result.reason);
  out.compared = receipt.tokens.size();
  out.same = !out.first_other && (was_stopped || out.stop_reason == receipt.stop_reason);
  out.tokens = std::move(result.tokens);
  return out;
}

}  // namespace

ModelFacts model_facts(const runtime::CompiledModel& model, const Tokenizer* tokenizer, ThreadPool& pool) {
  ModelFacts facts;
  facts.id = model.manifest.value("modelId", "model");
  facts.plan = model.plan_digest;
  facts.manifest = model.manifest_digest;
  for (const plan::ResolvedStep* step : plan::all_steps(model.plan))
    if (const auto digest = model.registry->digest(step->kernel, step->entry))
      facts.kernels[fmt::format("{}#{}", step->kernel, step->entry)] = "sha256:" + *digest;
  add_weights(facts, model.source, pool);
  if (tokenizer) facts.tokenizer = tokenizer->digest();
  if (const auto& text = model.source.chat_template()) facts.chat_template = sha256_of(std::as_bytes(std::span(*text)));
  return facts;
}

Receipt receipt_of(Engine& engine, const EngineOptions& options, const TextRequest& request, const TextResult& result) {
  Receipt receipt = receipt_of_model(engine, options);
  receipt.command = ReceiptCommand::run;
  receipt.prompt = request.prompt;
  receipt.max_tokens = request.max_tokens;
  receipt.stop_strings = request.stop_strings;
  receipt.ignore_stop_tokens = request.ignore_stop_tokens;
  receipt.sampler = request.sampler;
  receipt.tokens = result.tokens;
  receipt.stop_reason = to_string(result.reason);
  receipt.stop_text = result.stop;
  return receipt;
}

Receipt receipt_of(Engine& engine, const EngineOptions& options, std::span<const std::uint32_t> tokens,
                   std::span<const float> logits) {
  Receipt receipt = receipt_of_model(engine, options);
  receipt.command = ReceiptCommand::logits;
  receipt.prompt.assign(tokens.begin(), tokens.end());
  receipt.shape = {tokens.size(), engine.model().compiled().vocabulary};
  receipt.logits = sha256_of(std::as_bytes(logits));
  return receipt;
}

EngineOptions replay_options(const Receipt& receipt) {
  EngineOptions options;
  options.plan = receipt.plan;
  options.load.context = receipt.plan.context;
  return options;
}

Replay replay(Engine& engine, const Receipt& receipt, const std::function<bool()>& cancelled) {
  if (receipt.command == ReceiptCommand::run) return replay_run(engine, receipt, cancelled);
  Replay out;
  const std::vector<float> logits = engine.logits(receipt.prompt);
  out.logits = sha256_of(std::as_bytes(std::span(logits)));
  out.compared = receipt.prompt.size();
  out.same = out.logits == receipt.logits;
  return out;
}

}  // namespace candor
