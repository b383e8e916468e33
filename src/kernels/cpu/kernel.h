// What a CPU kernel is to the rest of the engine: a function over views, found by the (file, entry) that a plan names.
// Goals: one arithmetic whatever the number of rows, threads or the instruction set (docs/numerics.md); no allocation
// and no decision while it runs. Not a goal: checking shapes; the dataflow pass and the binder did, from the same
// registry entry. Rejected: a class hierarchy of operations; a plan step is already the object, a kernel is only its
// function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/thread_pool.h"
#include "formats/encoding.h"
#include "kernels/batch.h"

namespace candor::cpu {

/// Instruction sets the kernels are compiled for. Results are the same bits on each.
enum class Isa : std::uint8_t { portable, avx2, avx512, neon };

[[nodiscard]] std::string_view to_string(Isa isa);

/// The sets this processor can run, best first; `portable` is always last.
[[nodiscard]] std::span<const Isa> available_isas();

/// A matrix in a slot: `rows` rows of `cols` elements of `encoding`, each row starting `row_bytes` after the one
/// before. Rows start at multiples of 64 bytes.
struct Matrix {
  std::byte* data = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::uint64_t row_bytes = 0;
  Encoding encoding = Encoding::f32;
};

/// A weight as the kernel wants it: packed by Kernel::pack, or the stored bytes when the kernel packs nothing.
/// A vector has one row.
struct Weight {
  const std::byte* data = nullptr;
  std::uint64_t rows = 0;  ///< output features
  std::uint64_t cols = 0;  ///< input features
  Encoding encoding = Encoding::f32;
};

/// One layer's KV cache: `pages` pages of `page_positions` positions. What lies in a page is the attention kernel's own
/// affair (Kernel::kv_page_bytes says how large it is); `encoding` is the plan's KV encoding.
struct KvCache {
  std::byte* data = nullptr;
  std::uint64_t page_bytes = 0;
  std::uint32_t page_positions = 0;  ///< a multiple of 16
  Encoding encoding = Encoding::f32;
};

/// Constants of a step in the order its operation declares them: a number is one value, a boolean 0 or 1, an enum the
/// index of its choice, a list its elements.
struct Constants {
  std::span<const double> values;
  std::span<const std::uint32_t> begin;  ///< begin[i] … begin[i + 1] are the values of constant i

  [[nodiscard]] double number(std::size_t i) const { return values[begin[i]]; }
  [[nodiscard]] std::uint32_t integer(std::size_t i) const { return static_cast<std::uint32_t>(values[begin[i]]); }
  [[nodiscard]] std::span<const double> list(std::size_t i) const {
    return values.subspan(begin[i], begin[i + 1] - begin[i]);
  }
};

struct KernelArguments {
  Matrix dst;
  std::span<const Matrix> inputs;   ///< `src` first if the operation reads it, then its named inputs in declared order
  std::span<const Weight> weights;  ///< in declared order
  Constants constants;
  const Batch* batch = nullptr;
  const KvCache* kv = nullptr;   ///< for attention only
  std::span<std::byte> scratch;  ///< at least Kernel::scratch_bytes, 64-byte aligned, contents undefined
  ThreadPool* pool = nullptr;
};

/// The largest shapes a bound step will see.
struct KernelShapes {
  std::uint32_t rows = 0;  ///< rows of the batch
  std::uint32_t src_cols = 0;
  std::uint32_t dst_cols = 0;
  std::uint32_t context = 0;  ///< positions of the longest sequence
  std::uint32_t threads = 1;
};

struct Kernel {
  std::string_view file;   ///< as in the registry: "cpu/matmul_q8_0.cpp"
  std::string_view entry;  ///< "main"
  void (*run)(const KernelArguments&) = nullptr;

  /// Bytes of a [rows, cols] weight in the kernel's layout; null if it reads the stored bytes.
  std::uint64_t (*packed_bytes)(std::uint64_t rows, std::uint64_t cols) = nullptr;
  void (*pack)(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed,
               ThreadPool&) = nullptr;
  /// Names the layout: two kernels with the same name can share one packed copy of a weight.
  std::string_view layout = {};

  /// Scratch memory for the largest shapes; null if none.
  std::uint64_t (*scratch_bytes)(const KernelShapes&, const Constants&) = nullptr;
  /// Attention: bytes of one KV page of `positions` positions.
  std::uint64_t (*kv_page_bytes)(std::uint32_t positions, Encoding, const Constants&) = nullptr;
};

/// All kernels compiled for `isa`, one for each CPU entry of the registry.
[[nodiscard]] std::span<const Kernel> kernels(Isa isa);

/// The kernel of that file and entry, or nullptr.
[[nodiscard]] const Kernel* find_kernel(Isa isa, std::string_view file, std::string_view entry);

}  // namespace candor::cpu
