// The stages of tokenizer.json around the model: each function reads one component by its "type" and refuses one it
// does not know, naming it and the known ones.
#pragma once

#include <optional>
#include <string_view>

#include "text/decoder.h"
#include "text/json_fields.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_parts.h"

namespace candor::text {

[[nodiscard]] Normalizer read_normalizer(const std::optional<JsonField>& field);
[[nodiscard]] PreTokenizer read_pre_tokenizer(const std::optional<JsonField>& field, std::string_view label);
[[nodiscard]] PostProcessor read_post_processor(const std::optional<JsonField>& field);
[[nodiscard]] Decoder read_decoder(const std::optional<JsonField>& field, std::string_view label);

}  // namespace candor::text
