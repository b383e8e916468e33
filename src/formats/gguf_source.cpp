// A model in one GGUF file, or in the parts that llama.cpp's gguf-split writes: NAME-00001-of-00003.gguf, each a GGUF
// file with split.no (from 0) and split.count; the first has the model's metadata.
#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/limits.h"
#include "formats/model_source_builder.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

/// A part's file name taken apart.
struct PartName {
  std::string prefix;
  std::uint64_t number = 0;  ///< from 1
  std::uint64_t count = 0;
};

constexpr std::size_t kDigits = 5;
constexpr std::string_view kOf = "-of-";
constexpr std::string_view kExtension = ".gguf";

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<PartName> parse_part_name(std::string_view name) {
  constexpr std::size_t tail = 1 + kDigits + kOf.size() + kDigits + kExtension.size();
  if (name.size() <= tail || !name.ends_with(kExtension)) return std::nullopt;
  const std::string_view rest = name.substr(name.size() - tail);
  if (rest[0] != '-' || rest.substr(1 + kDigits, kOf.size()) != kOf) return std::nullopt;
  const auto number = parse_digits(rest.substr(1, kDigits));
  const auto count = parse_digits(rest.substr(1 + kDigits + kOf.size(), kDigits));
  if (!number || !count) return std::nullopt;
  return PartName{std::string(name.substr(0, name.size() - tail)), *number, *count};
}

fs::path part_path(const fs::path& path, const PartName& name, std::uint64_t number) {
  return path.parent_path() / fmt::format("{}-{:05}-of-{:05}{}", name.prefix, number, name.count, kExtension);
}

void check_part(const GgufMetadata& metadata, std::uint64_t number, std::uint64_t count, const std::string& label) {
  const auto part = metadata.unsigned_integer("split.no");
  const auto parts = metadata.unsigned_integer("split.count");
  if (!part || !parts) fail(ErrorCode::format, "{}: split.no or split.count is missing in a split model", label);
  if (*part != number - 1 || *parts != count)
    fail(ErrorCode::format, "{}: split.no is {} of split.count {}, but the file's name says part {} of {}", label,
         *part, *parts, number, count);
}

ModelSource read_split(const fs::path& path, std::uint64_t count) {
  const auto name = parse_part_name(path.filename().string());
  if (!name)
    fail(ErrorCode::format,
         "{}: split.count is {}, but the file's name does not end in -00001-of-{:05}.gguf; restore it", path.string(),
         count, count);
  if (name->count != count || count > limits::shards)
    fail(ErrorCode::format, "{}: split.count is {}, which is not the file name's or more than {}", path.string(), count,
         limits::shards);
  ModelSourceBuilder builder(SourceFormat::gguf, path);
  std::optional<std::uint64_t> expected;
  std::uint64_t tensors = 0;
  for (std::uint64_t number = 1; number <= count; ++number) {
    const fs::path part = part_path(path, *name, number);
    const std::uint32_t file = builder.add_file(MappedFile(part));
    GgufContent content = parse_gguf(builder.file(file).bytes(), part.string());
    check_part(content.metadata, number, count, part.string());
    tensors += content.tensors.size();
    builder.add_tensors(std::move(content.tensors), file);
    if (number > 1) continue;
    expected = content.metadata.unsigned_integer("split.tensors.count");
    if (const auto text = content.metadata.string("tokenizer.chat_template"))
      builder.chat_template() = std::string(*text);
    builder.set_gguf(std::move(content.metadata));
  }
  if (expected && *expected != tensors)
    fail(ErrorCode::format, "{}: split.tensors.count is {}, but the {} parts hold {} tensors", path.string(), *expected,
         count, tensors);
  return builder.finish();
}

}  // namespace

ModelSource read_gguf_model(const fs::path& path) {
  MappedFile file(path);
  GgufContent content = parse_gguf(file.bytes(), path.string());
  const std::uint64_t parts = content.metadata.unsigned_integer("split.count").value_or(1);
  if (parts > 1) return read_split(path, parts);
  ModelSourceBuilder builder(SourceFormat::gguf, path);
  if (const auto text = content.metadata.string("tokenizer.chat_template"))
    builder.chat_template() = std::string(*text);
  builder.add_tensors(std::move(content.tensors), builder.add_file(std::move(file)));
  builder.set_gguf(std::move(content.metadata));
  return builder.finish();
}

}  // namespace candor
