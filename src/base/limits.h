// One table of what untrusted input may ask for. A reader checks a count here before it allocates; a test tries one
// more than each. Raise a limit here, with its reason, or nowhere.
#pragma once

#include <cstdint>

namespace candor::limits {

inline constexpr std::uint64_t json_bytes = 256ull
                                            << 20;  ///< one JSON document (tokenizer.json of 256k entries: 35 MB)
inline constexpr std::uint32_t json_depth = 128;    ///< nesting of arrays and objects
inline constexpr std::uint64_t safetensors_header = 100ull << 20;  ///< the format's own cap, 100 MB
inline constexpr std::uint64_t tensors = 65'536;  ///< tensors in a model (a 61-layer, 256-expert model has 47k)
inline constexpr std::uint32_t tensor_rank = 4;   ///< dimensions of one tensor in GGUF; safetensors allows 8
inline constexpr std::uint32_t safetensors_rank = 8;
inline constexpr std::uint64_t tensor_elements = 1ull << 40;   ///< elements of one tensor
inline constexpr std::uint64_t metadata_keys = 65'536;         ///< GGUF key-value pairs
inline constexpr std::uint64_t name_bytes = 65'535;            ///< a tensor's or key's name
inline constexpr std::uint64_t vocabulary = 4'194'304;         ///< tokens in a vocabulary
inline constexpr std::uint64_t token_bytes = 65'536;           ///< bytes of one token
inline constexpr std::uint32_t shards = 16'384;                ///< files of one model
inline constexpr std::uint32_t layers = 4'096;                 ///< transformer layers
inline constexpr std::uint32_t steps = 65'536;                 ///< execution steps in a manifest
inline constexpr std::uint64_t context = 1ull << 24;           ///< positions of one sequence
inline constexpr std::uint64_t prompt_bytes = 64ull << 20;     ///< text given to a tokenizer at once
inline constexpr std::uint64_t template_bytes = 256ull << 10;  ///< source of a chat template (the largest known: 17 KB)
inline constexpr std::uint64_t template_memory = 48ull << 20;  ///< values and output alive while a template renders
inline constexpr std::uint64_t template_steps = 10'000'000;    ///< evaluations, elements and 32-byte pieces of text
inline constexpr std::uint32_t template_depth = 100;           ///< nesting of a template's blocks and expressions
inline constexpr std::uint32_t template_recursion = 1'000;     ///< evaluations within evaluations
inline constexpr std::uint32_t template_value_depth = 200;     ///< nesting of a value a template builds

}  // namespace candor::limits
