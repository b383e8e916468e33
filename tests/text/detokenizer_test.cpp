// Streaming: characters stay whole, and stop strings are found however the text is cut.
#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

namespace candor {
namespace {

/// Llama-style: spaces as ▁, unknown characters as bytes, one leading space stripped.
std::unique_ptr<Tokenizer> byte_fallback_tokenizer() {
  std::string vocabulary = R"("<unk>":0,"▁":1,"a":2,"▁a":3)";
  for (int byte = 0; byte < 256; ++byte) vocabulary += fmt::format(R"(,"<0x{:02X}>":{})", byte, 4 + byte);
  return load_tokenizer_json(
      R"({"added_tokens":[{"id":300,"content":"<s>","special":true}],
          "normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
                        {"type":"Replace","pattern":{"String":" "},"content":"▁"}]},
          "model":{"type":"BPE","byte_fallback":true,"vocab":{)" +
          vocabulary + R"(},"merges":["▁ a"]},
          "decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
                     {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}})",
      "", "test.json");
}

TEST(StreamDecoder, HoldsBytesUntilTheCharacterIsWhole) {
  const auto tokenizer = byte_fallback_tokenizer();
  StreamDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.push(3), "a");  // "▁a": the leading space is stripped
  EXPECT_EQ(decoder.push(3), " a");
  EXPECT_EQ(decoder.push(4 + 0xe4), "");
  EXPECT_EQ(decoder.push(4 + 0xb8), "");
  EXPECT_EQ(decoder.push(4 + 0xad), "中");
  EXPECT_EQ(decoder.push(300), "");  // special
  EXPECT_EQ(decoder.push(9999), "");
  EXPECT_EQ(decoder.push(4 + 0xf0), "");
  EXPECT_EQ(decoder.push(2),
            "\xef\xbf\xbd"
            "a");  // the character never came
  EXPECT_EQ(decoder.push(4 + 0xe4), "");
  EXPECT_EQ(decoder.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(decoder.push(3), "a");  // as new
}

TEST(StreamDecoder, AddsUpToDecodeAndNeverSplitsACharacter) {
  const auto tokenizer = byte_fallback_tokenizer();
  const std::string text = "a 中文 👨‍👩‍👧 é e\u0301 \u00a0 a  a \xf4\x8f\xbf\xbf";
  const auto ids = tokenizer->encode(text);
  StreamDecoder decoder(*tokenizer);
  std::string streamed;
  for (const auto id : ids) {
    const std::string piece = decoder.push(id);
    EXPECT_TRUE(is_utf8(piece)) << printable(piece);
    streamed += piece;
  }
  streamed += decoder.finish();
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(tokenizer->decode(ids), text);
}

TEST(StopMatcher, FindsAStopAcrossPieces) {
  StopMatcher matcher({"STOP", "<|im_end|>"});
  EXPECT_EQ(matcher.push("Hello S"), "Hello ");
  EXPECT_EQ(matcher.push("T"), "");
  EXPECT_EQ(matcher.push("art <|im"), "STart ");
  EXPECT_EQ(matcher.push("_end|"), "");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.push("> more"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), "<|im_end|>");
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, GivesBackWhatWasHeld) {
  StopMatcher matcher({"abc"});
  EXPECT_EQ(matcher.push("xab"), "x");
  EXPECT_EQ(matcher.finish(), "ab");
  EXPECT_THROW(StopMatcher({""}), Error);
}

TEST(StopMatcher, HowTheTextIsCutMakesNoDifference) {
  std::mt19937 random(5);
  const auto letters = [&](std::size_t length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> stops;
    for (int i = 0; i < 3; ++i) stops.push_back(letters(3 + random() % 6));
    const std::string text = letters(40);
    StopMatcher whole(stops);
    std::string expected = whole.push(text);
    expected += whole.finish();
    StopMatcher cut(stops);
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random() % 4;
      shown += cut.push(std::string_view(text).substr(at, size));
      at += size;
    }
    shown += cut.finish();
    EXPECT_EQ(shown, expected);
    EXPECT_EQ(cut.matched(), whole.matched());
    EXPECT_TRUE(text.starts_with(shown));
  }
}

}  // namespace
}  // namespace candor
