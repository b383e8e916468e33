// The Program: an execution plan bound to one backend. For each phase a flat list of instructions, each with its
// kernel, the buffers it reads and writes, its weights, constants and shapes; beside them the weights, the KV caches
// and the sizes of all memory. A running session only walks it. Made by runtime/binder.h; printed by `candor plan
// program`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/encoding.h"
#include "kernels/operations.h"

namespace candor {

enum class Phase : std::uint8_t { prefill, decode };
enum class ExternalInput : std::uint8_t { tokens, positions, types, sampler };

/// A buffer one instruction writes and later ones read. Several values share memory where their lifetimes allow.
struct ProgramValue {
  std::string slot;
  Encoding encoding = Encoding::f32;
  kernels::RowKind rows = kernels::RowKind::tokens;
  std::uint32_t cols = 0;
  std::uint64_t row_bytes = 0;  ///< a multiple of 64
  std::uint64_t offset = 0;     ///< in the phase's arena, a multiple of 64
  std::uint32_t buffer = 0;     ///< of a backend with separate slots: index into Program::slot_buffers
};

struct ProgramOperand {
  bool is_external = false;
  ExternalInput external = ExternalInput::tokens;
  std::uint32_t value = 0;
};

/// A weight in the layout one or more kernels read. The same tensor appears once a layout.
struct ProgramWeight {
  std::string tensor;
  std::uint32_t part = 0;   ///< which of the equal parts of a tensor that stacks several weights
  std::uint32_t parts = 1;  ///< 1: the tensor is this weight
  Encoding encoding = Encoding::f32;
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
  std::string layout;         ///< empty: the stored bytes, read where the file is mapped
  std::string kernel, entry;  ///< a kernel that reads this layout
  std::uint64_t bytes = 0;
};

struct ProgramKv {
  std::int32_t layer = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t head_dim = 0;
  std::uint64_t window = 0;
  Encoding encoding = Encoding::f32;
  std::uint64_t page_bytes = 0;
};

struct Instruction {
  std::string step;  ///< id of the plan's step
  std::string op;
  std::int32_t layer = -1;
  std::string kernel, entry, operation;
  std::vector<ProgramOperand> operands;
  std::vector<std::uint32_t> weights;
  kernels::ConstantBlock constants;
  std::uint32_t result = 0;
  std::int32_t kv = -1;
};

struct ProgramPhase {
  std::vector<ProgramValue> values;
  std::vector<Instruction> instructions;
};

/// How the KV cache of a sequence is laid out. Contiguous is one page a sequence; sliding gives pages back that no
/// attention step can see any more.
enum class CacheLayout : std::uint8_t { contiguous, paged, sliding };

/// How much one Program is laid out for.
struct ProgramLimits {
  std::uint32_t rows = 0;       ///< rows of a batch: the prefill chunk
  std::uint32_t sequences = 0;  ///< sequences at once
  std::uint32_t context = 0;    ///< positions of one sequence
  std::uint32_t page_positions = 0;
  std::uint32_t pages = 0;         ///< KV pages in all
  std::uint32_t cached_pages = 0;  ///< of these, how many may hold prefixes that no sequence needs
  CacheLayout layout = CacheLayout::contiguous;
  std::uint32_t window = 0;   ///< of layout sliding: positions a query sees, itself included; otherwise 0
  std::uint32_t overrun = 0;  ///< of layout sliding: tokens that may be computed and then taken back
};

/// How far decoding runs before what it made is looked at. A ring holds what waits to be read, in batches.
struct DecodeLoop {
  std::uint32_t batch_size = 1;         ///< tokens decoded between two looks at the stop conditions
  bool stop_check_per_token = true;     ///< a stop token ends decoding at once; false: it is seen at the next read-back
  std::uint32_t readback_interval = 1;  ///< batches between two deliveries of tokens to the caller
  std::uint32_t ring_tokens = 1;        ///< batches whose tokens can wait
  std::uint32_t ring_stop = 1;          ///< batches whose stop checks can wait
  std::uint32_t ring_staging = 1;       ///< read-backs under way at once

  /// Tokens between two deliveries.
  [[nodiscard]] std::uint32_t tokens_between_reads() const { return batch_size * readback_interval; }
};

struct Program {
  std::string backend;
  std::string plan_digest;
  ProgramLimits limits;
  DecodeLoop decode_loop;
  std::array<ProgramPhase, 2> phases;  ///< by Phase
  std::vector<ProgramWeight> weights;
  std::vector<ProgramKv> kv;
  std::uint64_t arena_bytes = 0;            ///< all memory for slots
  std::vector<std::uint64_t> slot_buffers;  ///< bytes of each; empty where slots lie in one arena
  std::uint64_t scratch_bytes = 0;

  [[nodiscard]] const ProgramPhase& phase(Phase which) const { return phases[static_cast<std::size_t>(which)]; }
  [[nodiscard]] std::uint64_t kv_bytes() const;      ///< all caches
  [[nodiscard]] std::uint64_t packed_bytes() const;  ///< weights in a layout of their own
  [[nodiscard]] std::uint64_t mapped_bytes() const;  ///< weights read where they are mapped
  /// Everything but instructions and weights: limits, memory, settings, caches.
  [[nodiscard]] Json summary() const;
  [[nodiscard]] Json to_json() const;
};

[[nodiscard]] std::string_view to_string(Phase phase);
[[nodiscard]] std::string_view to_string(CacheLayout layout);
[[nodiscard]] std::string_view to_string(ExternalInput external);

}  // namespace candor
