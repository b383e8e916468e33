#include "text/gguf_pre_tokenizers.h"

#include <array>
#include <string>

#include "base/error.h"

namespace candor::text {
namespace {

using Patterns = std::array<std::string_view, 1>;

constexpr Patterns kGpt2{R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};

constexpr Patterns kLlama3{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Patterns kQwen2{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Patterns kQwen35{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Patterns kSeedCoder{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Patterns kBailing{
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};

constexpr Patterns kGpt4o{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr Patterns kTekken{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::array<std::string_view, 2> kStarCoder{R"(\p{N})", kGpt2[0]};

constexpr std::array<std::string_view, 3> kFalcon{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2[0], "[0-9][0-9][0-9]"};

constexpr Patterns kBloom{R"( ?[^(\s|.,!?…。，、।۔،)]+)"};

constexpr std::array<std::string_view, 2> kViking{kBloom[0], R"(\p{N})"};

// The letters of cased scripts, as DeepSeek LLM's tokenizer.json lists them.
constexpr std::array<std::string_view, 6> kDeepSeekLlm{
    R"([\r\n])",
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    R"(\s+$)",
    R"([一-龥ࠀ-一가-퟿]+)",
    R"(\p{N}+)"};

constexpr std::array<std::string_view, 5> kDeepSeekCoder{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                                         R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"};

constexpr std::array<std::string_view, 3> kDeepSeekV3{
    R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::array<std::string_view, 2> kSuperBpe{R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};

constexpr GgufPreTokenizer kKnown[] = {
    {.name = "gpt-2", .patterns = kGpt2},
    {.name = "phi-2", .patterns = kGpt2},
    {.name = "mpt", .patterns = kGpt2},
    {.name = "olmo", .patterns = kGpt2},
    {.name = "jais", .patterns = kGpt2},
    {.name = "trillion", .patterns = kGpt2},
    {.name = "granite-docling", .patterns = kGpt2},
    {.name = "exaone4", .patterns = kGpt2},
    {.name = "gigachat", .patterns = kGpt2},
    {.name = "mellum", .patterns = kGpt2},
    {.name = "modern-bert", .patterns = kGpt2},
    {.name = "jina-es", .patterns = kGpt2},
    {.name = "jina-de", .patterns = kGpt2},
    {.name = "jina-v2-es", .patterns = kGpt2},
    {.name = "jina-v2-de", .patterns = kGpt2},
    {.name = "jina-v1-en", .patterns = kGpt2},
    {.name = "jina-v2-code", .patterns = kGpt2},
    {.name = "roberta-bpe", .patterns = kGpt2},
    {.name = "starcoder", .patterns = kStarCoder},
    {.name = "refact", .patterns = kStarCoder},
    {.name = "command-r", .patterns = kStarCoder},
    {.name = "smollm", .patterns = kStarCoder},
    {.name = "codeshell", .patterns = kStarCoder},
    {.name = "exaone", .patterns = kStarCoder},
    {.name = "minerva-7b", .patterns = kStarCoder},
    {.name = "mellum2", .patterns = kStarCoder},
    {.name = "llama3", .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama-bpe", .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "falcon3", .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "falcon-h1", .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "pixtral", .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "midm-2.0", .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "lfm2", .patterns = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "dbrx", .patterns = kLlama3},
    {.name = "smaug-bpe", .patterns = kLlama3},
    {.name = "chatglm-bpe", .patterns = kLlama3},
    {.name = "glm4", .patterns = kLlama3, .ignore_merges = true},
    {.name = "qwen2", .patterns = kQwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = kQwen2, .nfc = true},
    {.name = "megrez", .patterns = kQwen2, .nfc = true},
    {.name = "stablelm2", .patterns = kQwen2, .nfc = true},
    {.name = "hunyuan", .patterns = kQwen2},
    {.name = "grok-2", .patterns = kQwen2},
    {.name = "qwen35", .patterns = kQwen35, .nfc = true},
    {.name = "seed-coder", .patterns = kSeedCoder},
    {.name = "bailingmoe", .patterns = kBailing},
    {.name = "gpt-4o", .patterns = kGpt4o},
    {.name = "llama4", .patterns = kGpt4o},
    {.name = "kanana2", .patterns = kGpt4o},
    {.name = "minimax-m2", .patterns = kGpt4o},
    {.name = "tekken", .patterns = kTekken, .ignore_merges = true, .add_bos = true},
    {.name = "deepseek-llm", .patterns = kDeepSeekLlm},
    {.name = "deepseek-coder", .patterns = kDeepSeekCoder},
    {.name = "deepseek-v3", .patterns = kDeepSeekV3},
    {.name = "hunyuan-dense", .patterns = kDeepSeekV3},
    {.name = "falcon", .patterns = kFalcon},
    {.name = "bloom", .patterns = kBloom},
    {.name = "poro-chat", .patterns = kBloom},
    {.name = "gpt3-finnish", .patterns = kBloom},
    {.name = "viking", .patterns = kViking},
    {.name = "superbpe", .patterns = kSuperBpe},
};

}  // namespace

const GgufPreTokenizer& gguf_pre_tokenizer(std::string_view name, std::string_view label) {
  std::string names;
  for (const auto& known : kKnown) {
    if (known.name == name) return known;
    names += names.empty() ? "" : ", ";
    names += known.name;
  }
  fail(ErrorCode::unsupported, "{}: tokenizer.ggml.pre \"{}\" is not known here; known are {}", label, printable(name),
       names);
}

}  // namespace candor::text
