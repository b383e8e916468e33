// Any bytes: parsed or refused with an Error, and what was parsed prints to JSON that parses to the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  candor::Json value;
  try {
    value = candor::parse_json({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const candor::Error&) {
    return 0;
  }
  if (candor::to_js_json(candor::parse_json(candor::to_js_json(value), "printed")) != candor::to_js_json(value)) {
    std::abort();
  }
  return 0;
}
