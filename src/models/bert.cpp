// BERT (Devlin et al. 2018, arXiv:1810.04805) as an encoder of texts: word, position and type embeddings, LayerNorm
// after each sum, attention in both directions, GELU. What follows the layers is pooling, or for a classifier of one
// label, as rerankers are, a score of the pair.
#include "base/error.h"
#include "models/decoder.h"
#include "models/families.h"
#include "models/gguf_config.h"
#include "models/pooling.h"

namespace candor::models {
namespace {

struct BertNames {
  std::string words, positions, types, embedding_norm;
  std::string q, k, v, attention_out, attention_norm, up, down, output_norm;
  std::string pooler, classifier;
};

struct Bert {
  DecoderConfig config;
  std::uint64_t types = 0;
  BertNames names;
  bool scores = false;  ///< a classifier of one label follows
};

/// Checkpoints of the bare model have no prefix, those with a head "bert.".
BertNames huggingface_bert_names(const ModelSource& source) {
  const std::string prefix = source.find("embeddings.word_embeddings.weight") ? "" : "bert.";
  const std::string embeddings = prefix + "embeddings.";
  const std::string layer = prefix + "encoder.layer.{L}.";
  return {.words = embeddings + "word_embeddings.weight",
          .positions = embeddings + "position_embeddings.weight",
          .types = embeddings + "token_type_embeddings.weight",
          .embedding_norm = embeddings + "LayerNorm.weight",
          .q = layer + "attention.self.query.weight",
          .k = layer + "attention.self.key.weight",
          .v = layer + "attention.self.value.weight",
          .attention_out = layer + "attention.output.dense.weight",
          .attention_norm = layer + "attention.output.LayerNorm.weight",
          .up = layer + "intermediate.dense.weight",
          .down = layer + "output.dense.weight",
          .output_norm = layer + "output.LayerNorm.weight",
          .pooler = prefix + "pooler.dense.weight",
          .classifier = "classifier.weight"};
}

BertNames gguf_bert_names() {
  const std::string layer = "blk.{L}.";
  return {.words = "token_embd.weight",
          .positions = "position_embd.weight",
          .types = "token_types.weight",
          .embedding_norm = "token_embd_norm.weight",
          .q = layer + "attn_q.weight",
          .k = layer + "attn_k.weight",
          .v = layer + "attn_v.weight",
          .attention_out = layer + "attn_output.weight",
          .attention_norm = layer + "attn_output_norm.weight",
          .up = layer + "ffn_up.weight",
          .down = layer + "ffn_down.weight",
          .output_norm = layer + "layer_output_norm.weight",
          .pooler = "cls.weight",
          .classifier = "cls.output.weight"};
}

Bert read_huggingface_bert(const ModelSource& source, const DescribeOptions& options) {
  ConfigReader reader = huggingface_reader(source);
  Bert model;
  model.config.options = options;
  DecoderConfig& config = model.config;
  read_huggingface_dimensions(reader, config);
  if (config.heads * config.head_dim != config.hidden || config.kv_heads != config.heads)
    fail(ErrorCode::unsupported, "{}: {} heads of {} columns, {} of keys; BERT's heads divide its {} columns",
         reader.label(), config.heads, config.head_dim, config.kv_heads, config.hidden);
  config.norm_eps = reader.number("layer_norm_eps");
  config.activation = read_activation(reader, "hidden_act");
  model.types = reader.positive("type_vocab_size");
  if (const auto kind = reader.optional_string("position_embedding_type"); kind && *kind != "absolute")
    fail(ErrorCode::unsupported, "{}: position_embedding_type \"{}\" is not implemented", reader.label(),
         printable(*kind));
  reader.require("add_cross_attention", false, "there is no other sequence to attend to");
  reader.require("is_decoder", false, "as a decoder it is not implemented");
  reader.harmless({"attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout", "tie_word_embeddings",
                   "gradient_checkpointing", "problem_type", "num_labels", "sentence_transformers",
                   "sbert_ce_default_activation_function"});
  reader.finish();
  model.names = huggingface_bert_names(source);
  model.scores = source.find(model.names.classifier) != nullptr;
  config.pooling = choose_pooling(read_huggingface_pooling(source), options.pooling, source.path().string());
  return model;
}

Bert read_gguf_bert(const ModelSource& source, const DescribeOptions& options) {
  GgufReader reader(source, "bert");
  Bert model;
  model.config.options = options;
  DecoderConfig& config = model.config;
  read_gguf_dimensions(reader, config);
  config.norm_eps = reader.number("attention.layer_norm_epsilon");
  config.activation = "gelu_erf";
  if (reader.optional_boolean("attention.causal").value_or(false))
    fail(ErrorCode::unsupported, "{}: attention.causal is true; BERT attends in both directions", reader.label());
  model.names = gguf_bert_names();
  model.scores = source.find(model.names.classifier) != nullptr;
  reader.finish();
  const TensorInfo* types = source.find(model.names.types);
  if (!types || types->shape.size() != 2)
    fail(ErrorCode::format, "{}: tensor {} is missing or no matrix", reader.label(), model.names.types);
  model.types = types->shape[0];
  return model;
}

void add_bert_embeddings(StepBuilder& steps, const Bert& model) {
  const std::uint64_t hidden = model.config.hidden;
  steps.section("preLayer").embed(model.names.words, model.config.vocabulary, hidden);
  steps.positions("positions", model.names.positions, model.config.max_positions, hidden);
  steps.token_types("types", model.names.types, model.types, hidden);
  steps.residual("add_types", "types", "state", "state");
  steps.residual("add_positions", "positions", "state", "state");
  steps.layernorm("embedding_norm", "state", "state", model.names.embedding_norm, hidden, model.config.norm_eps);
}

void add_bert_layer(StepBuilder& steps, const Bert& model) {
  const DecoderConfig& config = model.config;
  const BertNames& names = model.names;
  const std::uint64_t hidden = config.hidden;
  const auto project = [&](const std::string& op, const std::string& src, const std::string& dst,
                           const std::string& weight, std::uint64_t out, std::uint64_t in) {
    steps.linear(op, src, dst, weight, out, in);
    steps.bias(op + "_bias", dst, bias_name(weight), out);
  };
  project("q_proj", "state", "q", names.q, hidden, hidden);
  project("k_proj", "state", "k", names.k, hidden, hidden);
  project("v_proj", "state", "v", names.v, hidden, hidden);
  steps.attention("q", "k", "v", "attn",
                  {.heads = config.heads,
                   .kv_heads = config.kv_heads,
                   .head_dim = config.head_dim,
                   .scale = config.score_factor(),
                   .causal = false});
  project("o_proj", "attn", "attn_out", names.attention_out, hidden, hidden);
  steps.residual("attn_residual", "attn_out", "state", "state");
  steps.layernorm("post_attn_norm", "state", "state", names.attention_norm, hidden, config.norm_eps);
  project("up_proj", "state", "up", names.up, config.intermediate, hidden);
  steps.activation("up", "act", config.activation);
  project("down_proj", "act", "ffn_out", names.down, hidden, config.intermediate);
  steps.residual("ffn_residual", "ffn_out", "state", "state");
  steps.layernorm("post_ffn_norm", "state", "state", names.output_norm, hidden, config.norm_eps);
}

/// The first token's row through tanh(pooler) and a matrix of one row.
void add_bert_score(StepBuilder& steps, const Bert& model) {
  const std::uint64_t hidden = model.config.hidden;
  steps.pool("pool", "state", "pooled", "first");
  steps.linear("pooler", "pooled", "pooled", model.names.pooler, hidden, hidden);
  steps.bias("pooler_bias", "pooled", bias_name(model.names.pooler), hidden);
  steps.softcap("pooler_tanh", "pooled", 1);  // 1 · tanh(x / 1)
  steps.linear("score", "pooled", "score", model.names.classifier, 1, hidden);
  steps.bias("score_bias", "score", bias_name(model.names.classifier), 1);
}

ModelDescription describe_bert(const ModelSource& source, const DescribeOptions& options) {
  Bert model = is_gguf(source) ? read_gguf_bert(source, options) : read_huggingface_bert(source, options);
  model.config.attention = {{}};  // no RoPE, no window
  model.config.causal = false;
  ModelDescription description = begin_decoder(model.config, "bert");
  StepBuilder steps(description);
  add_bert_embeddings(steps, model);
  steps.section("layer");
  add_bert_layer(steps, model);
  steps.section("postLayer");
  if (model.scores && !options.pooling.empty())
    fail(ErrorCode::usage, "{}: the model scores a pair of texts; leave out --pooling {}", source.path().string(),
         printable(options.pooling));
  if (model.scores) {
    add_bert_score(steps, model);
  } else if (model.config.pooling) {
    add_pooling(steps, *model.config.pooling, "state", model.config.hidden);
  } else {
    description.undecided = kPoolingUndecided;
  }
  // Heads that an embedding does without, and a table that old checkpoints saved.
  for (const TensorInfo& tensor : source.tensors())
    if ((!model.scores && (tensor.name == model.names.pooler || tensor.name == bias_name(model.names.pooler))) ||
        tensor.name.starts_with("cls.predictions.") || tensor.name.starts_with("cls.seq_relationship.") ||
        tensor.name.ends_with("embeddings.position_ids"))
      description.ignored_tensors.push_back(tensor.name);
  return description;
}

}  // namespace

Family bert_family() {
  return {"bert", {"bert"}, {"bert"}, describe_bert};
}

}  // namespace candor::models
