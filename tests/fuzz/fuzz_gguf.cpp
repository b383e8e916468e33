// Any bytes: a GGUF file that is refused with an Error, or one whose tensors and metadata are what it says.
#include <cstdint>

#include "allocation_limit.h"
#include "base/error.h"
#include "model_invariants.h"

namespace {

/// Every accessor on every key: a value or an Error.
void read_all(const candor::GgufMetadata& metadata) {
  const auto attempt = [](const auto& read) {
    try {
      (void)read();
    } catch (const candor::Error&) {
    }
  };
  for (const std::string& key : metadata.keys()) {
    attempt([&] { return metadata.string(key).has_value(); });
    attempt([&] { return metadata.unsigned_integer(key).has_value(); });
    attempt([&] { return metadata.number(key).has_value(); });
    attempt([&] { return metadata.boolean(key).has_value(); });
    attempt([&] { return metadata.strings(key).has_value(); });
    attempt([&] { return metadata.floats(key).has_value(); });
    attempt([&] { return metadata.integers(key).has_value(); });
    attempt([&] { return metadata.booleans(key).has_value(); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const candor::AllocationLimit limit(size);
  const auto file = std::as_bytes(std::span(data, size));
  try {
    candor::check_accepted_gguf(file);
  } catch (const candor::Error&) {
    return 0;
  }
  read_all(candor::parse_gguf(file, "input").metadata);
  return 0;
}
