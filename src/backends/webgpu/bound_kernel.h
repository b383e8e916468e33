// One instruction of a Program made ready for the device: for each of its kernel's passes a pipeline with its overrides
// set, its workgroup counts, and its buffers bound. Kernels get what they name (wgsl_interface.h), and these names have
// these values:
//
//   parameter or override
//             a constant of the operation by its own name (booleans 0 or 1, choices by number); srcCols, srcStride,
//             dstCols, dstStride and the same of every named input, strides in words; weightRows, weightCols,
//             weightEncoding of every weight by its name, and by `weight` of the first; where a kernel sees several
//             matrices as one binding, the place of each by its name, upAt, and weightStride and weightCount of
//             experts, all in units of 16 bytes; rowsAt (where the batch block has the number of rows); kvEncoding,
//             pagePositions, pageStride (16 bytes)
//   binding   batch; params; scratch; dst, and chosen for one of integers; src and named inputs; weights by their
//             names, and `weight` for all of an operation that has several; kv; a constant that is a list
#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/program.h"
#include "backends/webgpu/batch_block.h"
#include "backends/webgpu/device.h"
#include "backends/webgpu/sources.h"

namespace candor::webgpu {

/// Where things lie on the device, for binding.
struct Places {
  std::function<BufferRange(const ProgramValue&)> value;
  std::function<BufferRange(std::span<const std::uint32_t>)> weights;  ///< that lie one behind the other
  std::function<BufferRange(std::int32_t kv)> kv;
  std::function<BufferRange(const std::vector<float>&)> list;
  const Buffer* batch = nullptr;
  const Buffer* uniforms = nullptr;  ///< kParameterBytes for each instruction
  const Buffer* scratch = nullptr;   ///< as large as any instruction wants it
};

/// What a batch decides of workgroup counts.
struct BatchFacts {
  std::array<std::uint32_t, 2> rows{};  ///< by RowKind
  std::uint32_t end = 0;                ///< the largest position after a sequence's last
};

/// The slot of one instruction's parameters: the alignment that every device allows.
inline constexpr std::uint64_t kParameterBytes = 256;

/// The source and entry of an instruction's kernel. Throws Error(plan), naming the step, if this build has none.
struct KernelEntry {
  const WgslSource* source = nullptr;
  const WgslEntry* entry = nullptr;
};
[[nodiscard]] KernelEntry kernel_entry(const Instruction& instruction);

/// Whether the kernel sees all weights of the instruction as one binding, `weight`: those of one name, and those of an
/// operation that calls none of them so.
[[nodiscard]] bool binds_weights_together(const Instruction& instruction);

/// Bytes of scratch that the instruction's kernel wants.
[[nodiscard]] std::uint64_t scratch_of(const Instruction& instruction, const ProgramLimits& limits);

class BoundKernel {
 public:
  /// Its parameters go to the uniforms' slot `index`.
  BoundKernel(Device& device, const Program& program, Phase phase, const Instruction& instruction, std::size_t index,
              const BatchBlock& block, const Places& places);

  /// Records the dispatches for a batch that lies at `batch_offset`.
  void record(Commands& commands, const BatchFacts& batch, std::uint32_t batch_offset) const;

  [[nodiscard]] const std::string& step() const { return step_; }

 private:
  enum class Varying : std::uint8_t { none, rows, sequences, end };
  struct Count {
    double fixed = 1;  // product of what does not change
    Varying factor = Varying::none;
    double divisor = 1;
    double added = 0;
    Varying addend = Varying::none;
    bool fold = false;
  };
  struct Pass {
    const Pipeline* pipeline = nullptr;
    BindGroup group;
    std::vector<Count> counts;
    std::size_t dynamic = 0;
    std::uint32_t beyond = 0;
  };

  [[nodiscard]] std::map<std::string, double> values_of(const Program& program, const ProgramPhase& phase,
                                                        const Instruction& instruction) const;
  [[nodiscard]] Count resolve(const WgslCount& wanted, const std::map<std::string, double>& values) const;
  [[nodiscard]] double varying(Varying what, const BatchFacts& batch) const;
  void record(Commands& commands, const Pass& pass, const BatchFacts& batch, std::uint32_t batch_offset) const;

  std::string step_;
  std::uint32_t limit_;
  kernels::RowKind rows_;
  bool single_;
  std::vector<Pass> passes_;
};

}  // namespace candor::webgpu
