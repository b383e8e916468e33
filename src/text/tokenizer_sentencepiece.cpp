#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "text/protobuf.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/unigram.h"

namespace candor::text {
namespace {

/// What is read of a ModelProto. Field numbers and defaults are those of sentencepiece_model.proto.
struct ModelFile {
  std::vector<std::string_view> pieces;
  std::vector<float> scores;
  std::vector<PieceType> types;

  enum class Kind : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };
  Kind kind = Kind::unigram;
  bool white_space_is_suffix = false;
  bool byte_fallback = false;
  std::int64_t unk_id = 0;
  std::int64_t bos_id = 1;
  std::int64_t eos_id = 2;
  std::int64_t pad_id = -1;

  std::string_view charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_white_space = true;
  bool escape_white_space = true;
};

void read_piece(std::string_view message, std::string_view label, ModelFile& model) {
  const std::size_t id = model.pieces.size();
  if (id >= limits::vocabulary)
    fail(ErrorCode::format, "{}: more than the limit of {} pieces", label, limits::vocabulary);
  ProtobufReader reader(message, fmt::format("{}: piece {}", label, id));
  std::string_view piece;
  float score = 0;
  PieceType type = PieceType::normal;
  while (const auto field = reader.next()) {
    if (field->number == 1) piece = reader.bytes(*field);
    if (field->number == 2) score = reader.real(*field);
    if (field->number == 3) type = piece_type(reader.integer(*field), id, label);
  }
  if (!is_utf8(piece)) fail(ErrorCode::format, "{}: piece {} is not UTF-8", label, id);
  model.pieces.push_back(piece);
  model.scores.push_back(score);
  model.types.push_back(type);
}

void read_trainer_spec(std::string_view message, std::string_view label, ModelFile& model) {
  ProtobufReader reader(message, fmt::format("{}: trainer_spec", label));
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 3: {
        const std::int64_t kind = reader.integer(*field);
        if (kind != 1 && kind != 2)
          fail(ErrorCode::unsupported,
               "{}: trainer_spec.model_type {} is not supported; known are 1 (unigram) and 2 (BPE)", label, kind);
        model.kind = static_cast<ModelFile::Kind>(kind);
        break;
      }
      case 24:
        model.white_space_is_suffix = reader.boolean(*field);
        break;
      case 35:
        model.byte_fallback = reader.boolean(*field);
        break;
      case 40:
        model.unk_id = reader.integer(*field);
        break;
      case 41:
        model.bos_id = reader.integer(*field);
        break;
      case 42:
        model.eos_id = reader.integer(*field);
        break;
      case 43:
        model.pad_id = reader.integer(*field);
        break;
      default:
        break;  // how the model was trained
    }
  }
}

void read_normalizer_spec(std::string_view message, std::string_view label, ModelFile& model) {
  ProtobufReader reader(message, fmt::format("{}: normalizer_spec", label));
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 2:
        model.charsmap = reader.bytes(*field);
        break;
      case 3:
        model.add_dummy_prefix = reader.boolean(*field);
        break;
      case 4:
        model.remove_extra_white_space = reader.boolean(*field);
        break;
      case 5:
        model.escape_white_space = reader.boolean(*field);
        break;
      default:
        break;  // its name, and the rules the map was compiled from
    }
  }
  if (!model.escape_white_space)
    fail(ErrorCode::unsupported, "{}: normalizer_spec.escape_whitespaces is false, which is not supported", label);
}

void check_denormalizer_spec(std::string_view message, std::string_view label) {
  ProtobufReader reader(message, fmt::format("{}: denormalizer_spec", label));
  while (const auto field = reader.next())
    if (field->number == 2 && !reader.bytes(*field).empty())
      fail(ErrorCode::unsupported, "{}: denormalizer_spec.precompiled_charsmap is not supported", label);
}

ModelFile read_model_file(std::string_view bytes, std::string_view label) {
  ModelFile model;
  ProtobufReader reader(bytes, std::string(label));
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 1:
        read_piece(reader.bytes(*field), label, model);
        break;
      case 2:
        read_trainer_spec(reader.bytes(*field), label, model);
        break;
      case 3:
        read_normalizer_spec(reader.bytes(*field), label, model);
        break;
      case 5:
        check_denormalizer_spec(reader.bytes(*field), label);
        break;
      default:
        break;  // self-test data and extensions
    }
  }
  if (model.pieces.empty())
    fail(ErrorCode::format, "{}: there are no pieces; this is not a SentencePiece model", label);
  return model;
}

/// The piece at `id`, if it exists and has `type`; ids of -1 mean that the model has no such token.
std::optional<std::uint32_t> special_piece(const ModelFile& model, std::int64_t id, PieceType type) {
  if (id < 0 || static_cast<std::uint64_t>(id) >= model.pieces.size()) return std::nullopt;
  if (model.types[static_cast<std::size_t>(id)] != type) return std::nullopt;
  return static_cast<std::uint32_t>(id);
}

void add_special_pieces(const ModelFile& model, TokenizerParts& parts) {
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

SentencePieceRules rules_of(const ModelFile& model, const TokenizerParts& parts) {
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

std::unique_ptr<const Model> model_of(const ModelFile& model, const TokenizerParts& parts) {
  if (model.kind == ModelFile::Kind::bpe)
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
  const ModelFile model = read_model_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, label);
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
