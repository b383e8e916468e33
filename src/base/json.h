// JSON as the execution schema needs it: objects keep the order of their keys as JavaScript does, numbers print as
// JavaScript prints them, and digests are taken over the canonical form of RFC 8785. Parsing is nlohmann::json's; this
// header adds limits, JavaScript's key order, and the two printers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace candor {

/// A JSON value whose objects keep insertion order. Looking a key up is linear: large maps (vocabularies) use
/// nlohmann::json instead.
using Json = nlohmann::ordered_json;

/// Parses one JSON document. Integer-like keys come first in ascending order and a repeated key keeps its first place
/// with its last value, as in JavaScript. `label` names the document in errors.
/// Throws Error(format): malformed, invalid UTF-8, deeper than limits::json_depth or longer than limits::json_bytes.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view label);

/// The same with sorted keys and fast look-up, for large documents whose order means nothing.
[[nodiscard]] nlohmann::json parse_json_sorted(std::string_view text, std::string_view label);

/// True for a canonical array index ("0" … "4294967294"): JavaScript orders such keys before all others.
[[nodiscard]] bool is_index_key(std::string_view key);

/// Moves integer-like keys to the front, in ascending order, as JavaScript keeps them.
void order_index_keys(Json::object_t& object);

/// A number as JavaScript's Number::toString prints it (ECMA-262, 6.1.6.1.20): shortest digits, 1e21 and 1e-7 forms.
[[nodiscard]] std::string js_number(double value);

/// JSON.stringify(value) or JSON.stringify(value, null, indent): key order kept, numbers as JavaScript's.
[[nodiscard]] std::string to_js_json(const Json& value, int indent = 0);

/// Canonical JSON (RFC 8785): keys sorted by UTF-16 code units, no white space, numbers as JavaScript's.
[[nodiscard]] std::string to_canonical_json(const Json& value);

/// "sha256:" and the digest of the canonical form.
[[nodiscard]] std::string canonical_digest(const Json& value);

}  // namespace candor
