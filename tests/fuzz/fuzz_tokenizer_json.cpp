// tokenizer.json from anywhere: it loads or is refused, and what loads encodes and decodes a fixed text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto tokenizer = candor::load_tokenizer_json({reinterpret_cast<const char*>(data), size}, "", "fuzz");
    const auto ids = tokenizer->encode("Hello,  world! 123 \xe4\xb8\xad <s>\n");
    (void)tokenizer->decode(ids);
    for (const auto id : ids) (void)tokenizer->token_bytes(id);
  } catch (const candor::Error&) {
  }
  return 0;
}
