#include "text/decoder.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/unicode.h"

namespace candor::text {
namespace {

using Tokens = std::vector<std::string>;

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  if (text.find(from) == std::string::npos) return text;
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at = done) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  return out.append(text, done);
}

std::string clean_up(std::string text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules{{{" .", "."},
                                                                                         {" ?", "?"},
                                                                                         {" !", "!"},
                                                                                         {" ,", ","},
                                                                                         {" ' ", "'"},
                                                                                         {" n't", "n't"},
                                                                                         {" 'm", "'m"},
                                                                                         {" do not", " don't"},
                                                                                         {" 's", "'s"},
                                                                                         {" 've", "'ve"},
                                                                                         {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) text = replace_all(std::move(text), from, to);
  return text;
}

std::optional<char> byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc{} || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(byte));
}

/// One token through one step, where the step looks at one token alone; the base of both ways to decode.
std::string map(const ByteLevelDecode&, std::string_view token, bool) {
  auto bytes = byte_level::read(token);
  return bytes ? std::move(*bytes) : std::string(token);
}

std::string map(const ByteFallbackDecode&, std::string_view token, bool) {
  const auto byte = byte_token(token);
  return byte ? std::string(1, *byte) : std::string(token);
}

std::string map(const FuseDecode&, std::string_view token, bool) {
  return std::string(token);
}

std::string map(const MetaspaceDecode& step, std::string_view token, bool first) {
  std::string mark;
  unicode::append(mark, step.replacement);
  return replace_all(std::string(token), mark, first && step.strip_first ? "" : " ");
}

std::string map(const WordPieceDecode& step, std::string_view token, bool first) {
  std::string out;
  if (first) {
    out = token;
  } else if (token.starts_with(step.prefix)) {
    out = token.substr(step.prefix.size());
  } else {
    out.append(" ").append(token);
  }
  return step.cleanup ? clean_up(std::move(out)) : out;
}

std::string map(const ReplaceDecode& step, std::string_view token, bool) {
  std::string out;
  std::size_t done = 0;
  step.pattern.for_each_match(token, [&](Pattern::Span span) {
    out.append(token, done, span.begin - done).append(step.content);
    done = span.end;
  });
  return out.append(token, done);
}

std::string map(const StripDecode& step, std::string_view token, bool) {
  for (std::size_t n = 0; n < step.start && !token.empty(); ++n) {
    const auto [value, length] = unicode::first(token);
    if (value != step.content) break;
    token.remove_prefix(length);
  }
  for (std::size_t n = 0; n < step.stop && !token.empty(); ++n) {
    const auto [value, length] = unicode::last(token);
    if (value != step.content) break;
    token.remove_suffix(length);
  }
  return std::string(token);
}

std::string map(const SpaceJoinDecode&, std::string_view token, bool first) {
  std::string out(first ? "" : " ");
  return out.append(token);
}

std::string join(const Tokens& tokens) {
  std::string out;
  for (const auto& token : tokens) out += token;
  return out;
}

template <typename Step>
Tokens decode_step(const Step& step, Tokens tokens) {
  bool first = true;
  for (auto& token : tokens) {
    token = map(step, token, first);
    first = false;
  }
  return tokens;
}

Tokens decode_step(const ByteLevelDecode& step, Tokens tokens) {
  for (auto& token : tokens) token = map(step, token, false);
  return {unicode::to_valid_utf8(join(tokens))};
}

Tokens decode_step(const FuseDecode&, Tokens tokens) {
  return {join(tokens)};
}

Tokens decode_step(const ByteFallbackDecode&, Tokens tokens) {
  Tokens out;
  std::string run;
  const auto flush = [&] {
    if (run.empty()) return;
    if (is_utf8(run)) {
      out.push_back(run);
    } else {
      for (std::size_t i = 0; i < run.size(); ++i) out.emplace_back("\xef\xbf\xbd");
    }
    run.clear();
  };
  for (auto& token : tokens) {
    if (const auto byte = byte_token(token)) {
      run += *byte;
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  return out;
}

bool joins_all(const DecoderStep& step) {
  return std::holds_alternative<FuseDecode>(step) || std::holds_alternative<ByteLevelDecode>(step);
}

std::string_view name(const ByteLevelDecode&) {
  return "ByteLevel";
}
std::string_view name(const ByteFallbackDecode&) {
  return "ByteFallback";
}
std::string_view name(const FuseDecode&) {
  return "Fuse";
}
std::string_view name(const MetaspaceDecode&) {
  return "Metaspace";
}
std::string_view name(const WordPieceDecode&) {
  return "WordPiece";
}
std::string_view name(const ReplaceDecode&) {
  return "Replace";
}
std::string_view name(const StripDecode&) {
  return "Strip";
}
std::string_view name(const SpaceJoinDecode&) {
  return "none";
}

}  // namespace

std::vector<DecoderStep> sentencepiece_decoder(bool strip_space) {
  std::vector<DecoderStep> steps;
  steps.emplace_back(ReplaceDecode{Pattern::literal("\xe2\x96\x81"), " "});
  steps.emplace_back(ByteFallbackDecode{});
  steps.emplace_back(FuseDecode{});
  if (strip_space) steps.emplace_back(StripDecode{U' ', 1, 0});
  return steps;
}

Decoder::Decoder(std::vector<DecoderStep> steps, std::string_view label) : steps_(std::move(steps)) {
  bool joined = false;
  for (const auto& step : steps_) {
    if (joined && !joins_all(step)) {
      const auto* strip = std::get_if<StripDecode>(&step);
      if (strip == nullptr || strip->stop != 0 || stream_strip_.start != 0)
        fail(ErrorCode::unsupported,
             "{}: decoder {} after a step that joins all tokens cannot be streamed; only one Strip of leading "
             "characters "
             "may follow Fuse",
             label, std::visit([](const auto& typed) { return name(typed); }, step));
      stream_strip_ = *strip;
    }
    joined = joined || joins_all(step);
  }
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  for (const auto& step : steps_)
    tokens = std::visit([&](const auto& typed) { return decode_step(typed, std::move(tokens)); }, step);
  return join(tokens);
}

std::string Decoder::bytes_of(std::string_view token, bool first) const {
  std::string bytes(token);
  for (const auto& step : steps_) {
    // A byte is final: the steps after it expect whole characters.
    if (const auto byte = byte_token(bytes); byte && std::holds_alternative<ByteFallbackDecode>(step)) return {*byte};
    bytes = std::visit([&](const auto& typed) { return map(typed, bytes, first); }, step);
    if (joins_all(step)) break;
  }
  return bytes;
}

std::vector<std::string> Decoder::names() const {
  std::vector<std::string> names;
  for (const auto& step : steps_) names.emplace_back(std::visit([](const auto& typed) { return name(typed); }, step));
  return names;
}

}  // namespace candor::text
