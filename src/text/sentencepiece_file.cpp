#include "text/sentencepiece_file.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "text/protobuf.h"

namespace candor::text {
namespace {

void read_piece(std::string_view message, std::string_view label, SentencePieceFile& model) {
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

void read_trainer_spec(std::string_view message, std::string_view label, SentencePieceFile& model) {
  ProtobufReader reader(message, fmt::format("{}: trainer_spec", label));
  while (const auto field = reader.next()) {
    switch (field->number) {
      case 3: {
        const std::int64_t kind = reader.integer(*field);
        if (kind != 1 && kind != 2)
          fail(ErrorCode::unsupported,
               "{}: trainer_spec.model_type {} is not supported; known are 1 (unigram) and 2 (BPE)", label, kind);
        model.kind = static_cast<SentencePieceFile::Kind>(kind);
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

void read_normalizer_spec(std::string_view message, std::string_view label, SentencePieceFile& model) {
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

}  // namespace

SentencePieceFile read_sentencepiece_file(std::string_view bytes, std::string_view label) {
  SentencePieceFile model;
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

}  // namespace candor::text
