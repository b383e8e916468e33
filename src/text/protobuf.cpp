#include "text/protobuf.h"

#include <bit>

#include "base/error.h"

namespace candor::text {

std::uint64_t ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) fail(ErrorCode::format, "{}: truncated in a number", what_);
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  fail(ErrorCode::format, "{}: a number has more than 10 bytes", what_);
}

std::uint64_t ProtobufReader::fixed(std::size_t size) {
  if (rest_.size() < size) fail(ErrorCode::format, "{}: truncated in a number", what_);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
  rest_.remove_prefix(size);
  return value;
}

std::optional<ProtobufReader::Field> ProtobufReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t key = varint();
  constexpr std::uint64_t kHighestNumber = (1u << 29) - 1;
  if (key >> 3 == 0 || key >> 3 > kHighestNumber)
    fail(ErrorCode::format, "{}: field number {} does not exist", what_, key >> 3);
  Field field;
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.wire = static_cast<Wire>(key & 7);
  switch (field.wire) {
    case Wire::varint:
      field.scalar = varint();
      return field;
    case Wire::fixed64:
      field.scalar = fixed(8);
      return field;
    case Wire::fixed32:
      field.scalar = fixed(4);
      return field;
    case Wire::bytes: {
      const std::uint64_t size = varint();
      if (size > rest_.size())
        fail(ErrorCode::format, "{}: field {} claims {} bytes of {} left", what_, field.number, size, rest_.size());
      field.bytes = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return field;
    }
  }
  fail(ErrorCode::format, "{}: field {} has wire type {}, which is not supported", what_, field.number, key & 7);
}

void ProtobufReader::require(const Field& field, Wire wire) const {
  if (field.wire != wire)
    fail(ErrorCode::format, "{}: field {} has wire type {}, expected {}", what_, field.number,
         static_cast<unsigned>(field.wire), static_cast<unsigned>(wire));
}

std::string_view ProtobufReader::bytes(const Field& field) const {
  require(field, Wire::bytes);
  return field.bytes;
}

bool ProtobufReader::boolean(const Field& field) const {
  require(field, Wire::varint);
  return field.scalar != 0;
}

std::int64_t ProtobufReader::integer(const Field& field) const {
  require(field, Wire::varint);
  return static_cast<std::int64_t>(field.scalar);
}

float ProtobufReader::real(const Field& field) const {
  require(field, Wire::fixed32);
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.scalar));
}

}  // namespace candor::text
