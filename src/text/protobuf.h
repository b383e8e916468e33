// Reading protocol buffers (wire format, version 2 and 3): enough for SentencePiece models. Fields come in file order;
// nothing is copied; every length is checked against what is left. Groups, which no model uses, are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace candor::text {

class ProtobufReader {
 public:
  enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  struct Field {
    std::uint32_t number = 0;
    Wire wire = Wire::varint;
    std::uint64_t scalar = 0;  ///< varint, fixed32 or fixed64
    std::string_view bytes;    ///< strings, bytes and messages
  };

  /// `what` names the message in errors ("llama.model: trainer_spec").
  ProtobufReader(std::string_view message, std::string what) : rest_(message), what_(std::move(what)) {}

  /// The next field, or nothing at the end. Throws Error(format): truncated, an overlong varint, a group.
  [[nodiscard]] std::optional<Field> next();

  /// The value of a field, if it has the wire type of its declaration. Throws Error(format) otherwise.
  [[nodiscard]] std::string_view bytes(const Field& field) const;
  [[nodiscard]] bool boolean(const Field& field) const;
  [[nodiscard]] std::int64_t integer(const Field& field) const;
  [[nodiscard]] float real(const Field& field) const;

 private:
  [[nodiscard]] std::uint64_t varint();
  [[nodiscard]] std::uint64_t fixed(std::size_t size);
  void require(const Field& field, Wire wire) const;

  std::string_view rest_;
  std::string what_;
};

}  // namespace candor::text
