// Any text: a manifest that is refused with an Error, or one whose tensors and shards are what it says.
#include <cstdint>

#include "allocation_limit.h"
#include "base/error.h"
#include "model_invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const candor::AllocationLimit limit(size, 256);  // the document, its copies and its canonical form
  try {
    candor::check_accepted_manifest({reinterpret_cast<const char*>(data), size});
  } catch (const candor::Error&) {
  }
  return 0;
}
