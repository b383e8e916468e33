#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "text/sentencepiece.h"
#include "text/sentencepiece_file.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/unigram.h"

namespace candor::text {
namespace {

/// The piece at `id`, if it exists and has `type`; ids of -1 mean that the model has no such token.
std::optional<std::uint32_t> special_piece(const SentencePieceFile& model, std::int64_t id, PieceType type) {
  if (id < 0 || static_cast<std::uint64_t>(id) >= model.pieces.size()) return std::nullopt;
  if (model.types[static_cast<std::size_t>(id)] != type) return std::nullopt;
  return static_cast<std::uint32_t>(id);
}

void add_special_pieces(const SentencePieceFile& model, TokenizerParts& parts) {
  for (std::uint32_t id = 0; id < model.pieces.size(); ++id) {
    if (model.types[id] != PieceType::control && model.types[id] != PieceType::unknown) continue;
    AddedToken token;
    token.id = id;
    token.content = model.pieces[id];
    token.special = true;
    if (parts.vocabulary->find(token.content) == id) parts.add_token(token);
  }
  parts.ids.unk = special_piece(model, model.unk_id, PieceType::unknown);
  parts.ids.bos = special_piece(model, model.bos_id, PieceType::control);
  parts.ids.eos = special_piece(model, model.eos_id, PieceType::control);
  parts.ids.pad = special_piece(model, model.pad_id, PieceType::control);
  // The file does not say what a prompt needs. Models with BOS are decoders that begin with it; T5, which has none,
  // ends its input with EOS.
  if (parts.ids.bos) {
    parts.post_processor.before.push_back(*parts.ids.bos);
  } else if (parts.ids.eos) {
    parts.post_processor.after.push_back(*parts.ids.eos);
  }
}

SentencePieceRules rules_of(const SentencePieceFile& model, const TokenizerParts& parts) {
  SentencePieceRules rules;
  if (!model.charsmap.empty()) rules.map.emplace(model.charsmap, parts.label);
  rules.add_dummy_prefix = model.add_dummy_prefix;
  rules.remove_extra_white_space = model.remove_extra_white_space;
  rules.white_space_is_suffix = model.white_space_is_suffix;
  std::vector<std::pair<std::string_view, std::uint32_t>> user_defined;
  for (std::uint32_t id = 0; id < model.pieces.size(); ++id)
    if (model.types[id] == PieceType::user_defined) user_defined.emplace_back(model.pieces[id], id);
  rules.user_defined = ByteTrie(std::move(user_defined));
  return rules;
}

std::unique_ptr<const Model> model_of(const SentencePieceFile& model, const TokenizerParts& parts) {
  if (model.kind == SentencePieceFile::Kind::bpe)
    return std::make_unique<ScoredBpe>(*parts.vocabulary, model.scores, model.types, model.byte_fallback, parts.label);
  std::vector<UnigramPiece> pieces;
  pieces.reserve(model.pieces.size());
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const bool user_defined = model.types[id] == PieceType::user_defined;
    pieces.push_back({model.scores[id], model.types[id] == PieceType::normal || user_defined, user_defined});
  }
  return std::make_unique<Unigram<float>>(*parts.vocabulary, pieces, UnigramOptions{parts.ids.unk, model.byte_fallback},
                                          parts.label);
}

TokenizerParts read_parts(std::span<const std::byte> bytes, std::string_view label) {
  const SentencePieceFile model =
      read_sentencepiece_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, label);
  TokenizerParts parts;
  parts.label = label;
  parts.source = "sentencepiece";
  parts.digest = "sha256:" + sha256_hex(bytes);
  parts.vocabulary->reserve(model.pieces.size());
  for (std::size_t id = 0; id < model.pieces.size(); ++id) parts.vocabulary->add(model.pieces[id], id, label);
  add_special_pieces(model, parts);
  parts.model = model_of(model, parts);
  parts.decoder.emplace(sentencepiece_decoder(model.add_dummy_prefix), label);
  std::vector<NormalizerStep> steps;
  steps.emplace_back(rules_of(model, parts));
  parts.normalizer = Normalizer(std::move(steps));
  parts.build_added_sets();
  return parts;
}

}  // namespace
}  // namespace candor::text

namespace candor {

std::unique_ptr<Tokenizer> load_sentencepiece_model(std::span<const std::byte> bytes, std::string_view label) {
  return std::make_unique<Tokenizer>(text::read_parts(bytes, label));
}

}  // namespace candor
