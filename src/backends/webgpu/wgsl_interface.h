// What a WGSL source says of itself: bindings, overrides, uniform parameters, and for each entry which bindings it uses
// and how many workgroups it wants. The source is the only place where this is written, so a kernel's digest covers it
// and nothing can disagree with it. Not a goal: parsing WGSL; these declarations stand on lines of their own, in one
// form.
//
//   @group(0) @binding(2) var<storage, read> weight: array<u32>;      read or read_write
//   @group(0) @binding(6) var<uniform> params: Params;
//   override weightEncoding: u32;          what is compiled in; names and their values are bound_kernel.h's
//   struct Params {
//     dstCols: u32,                        u32 or f32, each a word
//   }
//   // entry gemv(params, src, weight, dst) dispatch(dstCols / 4, rows)        before the entry's function
//   // then combine(params, dst) dispatch(rows) when end > 256                another pass of the same entry
//
// A workgroup count is a product of names and numbers, divided by one more and rounded up, plus another name or number.
// `fold(…)` spreads a count that may exceed a dimension's limit over x and y. Of a batch are `rows` (of the result),
// `sequences` and `end`, the largest position after a sequence's last. An entry may also say
//
//   scratch(rows, headDim / 4, 16)         bytes of memory for its passes alone, a product of counts; here `rows`,
//                                          `sequences` and `context` are the most that a Program is laid out for
//   single                                 its batches have one row a sequence
//
// Workgroup memory is what a pass's function reaches, itself and through others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace candor::webgpu {

struct WgslBinding {
  std::string name;
  std::uint32_t binding = 0;
  bool writes = false;
  bool uniform = false;
};

/// A member of the struct Params.
struct WgslParameter {
  std::string name;
  bool is_float = false;
};

/// A product of names and numbers over a divisor, plus an addend.
struct WgslCount {
  std::vector<std::string> factors;
  std::string divisor = "1";
  std::string addend = "0";
  bool fold = false;
};

/// One dispatch.
struct WgslPass {
  std::string function;
  std::vector<WgslBinding> bindings;  ///< in the order of the list
  std::vector<WgslCount> dispatch;
  std::uint32_t beyond = 0;  ///< it is left out of batches whose `end` is not larger
  std::uint32_t workgroup_size = 0;
  std::uint64_t workgroup_bytes = 0;
};

struct WgslEntry {
  std::string name;                ///< of its first pass's function too
  std::vector<WgslPass> passes;    ///< at least one
  std::vector<WgslCount> scratch;  ///< empty: none
  bool single = false;
};

struct WgslInterface {
  std::vector<std::string> overrides;  ///< those without a value of their own
  std::vector<WgslParameter> parameters;
  std::vector<WgslEntry> entries;

  [[nodiscard]] const WgslEntry* find(std::string_view entry) const;
};

/// Throws Error(format), naming `file` and the line, for a declaration in another form or an entry whose binding is not
/// declared.
[[nodiscard]] WgslInterface parse_wgsl(std::string_view source, std::string_view file);

}  // namespace candor::webgpu
