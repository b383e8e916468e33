// Any bytes: a safetensors file that is refused with an Error, or one whose tensors are what it says.
#include <cstdint>

#include "allocation_limit.h"
#include "base/error.h"
#include "model_invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const candor::AllocationLimit limit(size);
  try {
    candor::check_accepted_safetensors(std::as_bytes(std::span(data, size)));
  } catch (const candor::Error&) {
  }
  return 0;
}
