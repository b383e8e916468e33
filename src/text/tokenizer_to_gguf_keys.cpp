#include "text/tokenizer_to_gguf_keys.h"

#include <array>
#include <memory>

#include "formats/gguf.h"

namespace candor::text {
namespace {

/// Texts on which the written tokenizer must give the ids of the original.
constexpr std::array<std::string_view, 13> kProbes{
    "Hello, world!",
    " leading and trailing spaces  ",
    "tabs\tand\nlines\r\n\r\n  indented\n",
    "It's they'll I'VE 'tis 3.14159 1234567890 0x1F",
    "na\xc3\xafve caf\xc3\xa9 cafe\xcc\x81 \xc3\x85ngstr\xc3\xb6m",
    "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xce\xba\xcf\x8c\xcf\x83\xce\xbc\xce\xb5",
    "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c "
    "\xe3\x81\x93\xe3\x82\x93\xe3\x81\xab\xe3\x81\xa1\xe3\x81\xaf",
    "\xd8\xa7\xd9\x84\xd8\xb3\xd9\x84\xd8\xa7\xd9\x85 "
    "\xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87",
    "\xf0\x9f\x98\x80\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \xe2\x80\x94 \xe2\x82\xac\xc2\xbd\xc2\xb2",
    "#include <vector>\nint main() { return a[i] != b->c; }  // x\n",
    "<|im_start|>user\nHi<|im_end|>\n<s></s>",
    "WHITE\xc2\xa0SPACE\xe2\x80\x83\xe3\x80\x80  \x7f",
    ""};

std::optional<std::vector<std::uint32_t>> encoded(const Tokenizer& tokenizer, std::string_view text) {
  try {
    return tokenizer.encode(text);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::text) throw;
    return std::nullopt;
  }
}

}  // namespace

void TokenizerKeys::put_tokens(GgufTokens tokens, std::uint64_t rows) {
  if (tokens.tokens.size() > rows)
    fail(ErrorCode::format, "{}: has {} tokens, but the model only {} rows for them", label_, tokens.tokens.size(),
         rows);
  for (std::size_t id = tokens.tokens.size(); id < rows; ++id) {
    tokens.tokens.emplace_back();
    tokens.types.push_back(PieceType::unused);
    if (!tokens.scores.empty()) tokens.scores.push_back(0);
  }
  std::vector<std::int32_t> types;
  for (std::size_t id = 0; id < rows; ++id) {
    if (tokens.tokens[id].empty()) {
      tokens.tokens[id] = fmt::format("[PAD{}]", id);  // the name that converters give rows without a token
      tokens.types[id] = PieceType::unused;
    }
    types.push_back(static_cast<std::int32_t>(tokens.types[id]));
  }
  pairs_.set_strings("tokenizer.ggml.tokens", tokens.tokens);
  pairs_.set_i32s("tokenizer.ggml.token_type", types);
  if (!tokens.scores.empty()) pairs_.set_f32s("tokenizer.ggml.scores", tokens.scores);
}

void TokenizerKeys::put_ends() {
  std::vector<std::uint32_t> ends = original_.encode("");
  const bool bos = original_.adds_bos();
  if (bos) ends.erase(ends.begin());
  const bool eos = !ends.empty() && original_.eos_id() == ends.back();
  if (eos) ends.pop_back();
  if (!ends.empty()) refuse("{} other tokens than BOS and EOS are put around a text", ends.size());
  pairs_.set_boolean("tokenizer.ggml.add_bos_token", bos);
  pairs_.set_boolean("tokenizer.ggml.add_eos_token", eos);
}

void TokenizerKeys::put_id(std::string_view name, std::optional<std::uint32_t> id) {
  if (id) pairs_.set_u32(fmt::format("tokenizer.ggml.{}_token_id", name), *id);
}

void TokenizerKeys::put_ids(std::span<const std::uint32_t> stop_tokens) {
  put_id("bos", original_.bos_id());
  put_id("padding", original_.pad_id());
  put_id("unknown", original_.unk_id());
  if (stop_tokens.size() > 2) refuse("{} tokens end an answer", stop_tokens.size());
  put_id("eos", stop_tokens.empty() ? original_.eos_id() : stop_tokens[0]);
  if (stop_tokens.size() > 1) put_id("eot", stop_tokens[1]);
}

void TokenizerKeys::check() const {
  const std::string file = layout_gguf("tokenizer", pairs_, {}).files.front().header;
  const GgufContent content = parse_gguf(std::as_bytes(std::span(file)), label_);
  const auto written = load_tokenizer_gguf(content.metadata, label_);
  for (const std::string_view probe : kProbes)
    if (const auto wanted = encoded(original_, probe); wanted && encoded(*written, probe) != wanted)
      refuse("\"{}\" gets other tokens from what was written", printable(probe));
}

}  // namespace candor::text
