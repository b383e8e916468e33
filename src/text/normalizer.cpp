#include "text/normalizer.h"

#include <algorithm>
#include <utility>

#include "text/byte_level.h"

namespace candor::text {
namespace {

/// Builds the normalized text from code points and notes whether the first one of the source survived.
template <typename Visit>
std::string rewrite(std::string_view text, bool& at_start, const Visit& visit) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, length] = unicode::first(text.substr(at));
    visit(out, value);
    at += length;
    if (out.empty()) at_start = false;
  }
  return out;
}

/// CJK ideographs as BERT counts them: the unified blocks and the compatibility ideographs.
bool is_ideograph(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

bool is_bert_control(char32_t c) {
  return c != '\t' && c != '\n' && c != '\r' && unicode::is_other(c);
}

void append_cleaned(std::string& out, char32_t c) {
  if (c == 0 || c == 0xfffd || is_bert_control(c)) return;
  unicode::append(out, unicode::is_white_space(c) ? U' ' : c);
}

bool is_removed_by_nmt(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
}

bool is_space_for_nmt(char32_t c) {
  return c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
}

std::string apply(const UnicodeForm& step, std::string_view text, bool&) {
  return unicode::normalize(text, step.form);
}

std::string apply(const Lowercase&, std::string_view text, bool& at_start) {
  return rewrite(text, at_start, unicode::append_lower_case);
}

std::string apply(const StripAccents&, std::string_view text, bool& at_start) {
  return rewrite(text, at_start, [](std::string& out, char32_t c) {
    if (!unicode::is_mark(c)) unicode::append(out, c);
  });
}

std::string apply(const StripWhiteSpace& step, std::string_view text, bool& at_start) {
  while (step.left && !text.empty()) {
    const auto [value, length] = unicode::first(text);
    if (!unicode::is_white_space(value)) break;
    text.remove_prefix(length);
    at_start = false;
  }
  while (step.right && !text.empty()) {
    const auto [value, length] = unicode::last(text);
    if (!unicode::is_white_space(value)) break;
    text.remove_suffix(length);
  }
  return std::string(text);
}

std::string apply(const Nmt&, std::string_view text, bool& at_start) {
  return rewrite(text, at_start, [](std::string& out, char32_t c) {
    if (is_removed_by_nmt(c)) return;
    unicode::append(out, is_space_for_nmt(c) ? U' ' : c);
  });
}

std::string apply(const Prepend& step, std::string_view text, bool&) {
  return text.empty() ? std::string() : step.text + std::string(text);
}

std::string apply(const Replace& step, std::string_view text, bool& at_start) {
  std::string out;
  out.reserve(text.size());
  std::size_t done = 0;
  step.pattern.for_each_match(text, [&](Pattern::Span span) {
    if (span.begin == 0 && span.end > 0 && step.content.empty()) at_start = false;
    out.append(text, done, span.begin - done).append(step.content);
    done = span.end;
  });
  return out.append(text, done);
}

std::string apply(const BertNormalizer& step, std::string_view text, bool& at_start) {
  std::string out(text);
  if (step.clean_text) out = rewrite(out, at_start, append_cleaned);
  if (step.space_ideographs)
    out = rewrite(out, at_start, [](std::string& to, char32_t c) {
      const bool alone = is_ideograph(c);
      if (alone) to += ' ';
      unicode::append(to, c);
      if (alone) to += ' ';
    });
  if (step.strip_accents)
    out = rewrite(unicode::normalize(out, unicode::Form::nfd), at_start, [](std::string& to, char32_t c) {
      if (!unicode::is_nonspacing_mark(c)) unicode::append(to, c);
    });
  if (step.lowercase) out = rewrite(out, at_start, unicode::append_lower_case);
  return out;
}

std::string apply(const SpellBytes&, std::string_view text, bool&) {
  return byte_level::spell(text);
}

std::string apply(const Precompiled& step, std::string_view text, bool& at_start) {
  return step.map.apply_by_grapheme(text, at_start);
}

std::string apply(const SentencePieceRules& step, std::string_view text, bool&) {
  return step.apply(text);
}

std::string_view name(const UnicodeForm& step) {
  switch (step.form) {
    case unicode::Form::nfc:
      return "NFC";
    case unicode::Form::nfd:
      return "NFD";
    case unicode::Form::nfkc:
      return "NFKC";
    case unicode::Form::nfkd:
      return "NFKD";
  }
  return {};
}
std::string_view name(const Lowercase&) {
  return "Lowercase";
}
std::string_view name(const StripAccents&) {
  return "StripAccents";
}
std::string_view name(const StripWhiteSpace&) {
  return "Strip";
}
std::string_view name(const Nmt&) {
  return "Nmt";
}
std::string_view name(const Prepend&) {
  return "Prepend";
}
std::string_view name(const Replace&) {
  return "Replace";
}
std::string_view name(const BertNormalizer&) {
  return "BertNormalizer";
}
std::string_view name(const SpellBytes&) {
  return "ByteLevel";
}
std::string_view name(const Precompiled&) {
  return "Precompiled";
}
std::string_view name(const SentencePieceRules&) {
  return "SentencePiece";
}

}  // namespace

std::string Normalizer::apply(std::string_view text, bool& at_start) const {
  std::string out(text);
  for (const auto& step : steps_)
    out = std::visit([&](const auto& typed) { return text::apply(typed, out, at_start); }, step);
  return out;
}

std::vector<std::string> Normalizer::names() const {
  std::vector<std::string> names;
  for (const auto& step : steps_) names.emplace_back(std::visit([](const auto& typed) { return name(typed); }, step));
  return names;
}

}  // namespace candor::text
