// One instruction of a Program made ready for the device: its pipeline with every constant and shape set as an
// override, and its buffers bound. Kernels get what they name (wgsl_interface.h), and these names have these values:
//
//   parameter or override
//             a constant of the operation by its own name (booleans 0 or 1, choices by number); srcCols, srcStride,
//             dstCols, dstStride and the same of every named input, strides in words; weightRows, weightCols,
//             weightEncoding of every weight by its name, weightStride (16 bytes) and weightCount of experts; rowsAt,
//             srcRowsAt (where the batch block has the number of rows); kvEncoding, pagePositions, pageStride (16
//             bytes)
//   binding   batch; params; dst, and chosen for one of integers; src and named inputs; weights; kv; a constant that is
//   a list
#pragma once

#include <array>
#include <functional>
#include <map>
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
  std::function<BufferRange(std::uint32_t weight, std::size_t count)> weights;  ///< `count` that lie one after another
  std::function<BufferRange(std::int32_t kv)> kv;
  std::function<BufferRange(const std::vector<float>&)> list;
  const Buffer* batch = nullptr;
  const Buffer* uniforms = nullptr;  ///< kParameterBytes for each instruction
};

/// The slot of one instruction's parameters: the alignment that every device allows.
inline constexpr std::uint64_t kParameterBytes = 256;

/// The source and entry of an instruction's kernel. Throws Error(plan), naming the step, if this build has none.
struct KernelEntry {
  const WgslSource* source = nullptr;
  const WgslEntry* entry = nullptr;
};
[[nodiscard]] KernelEntry kernel_entry(const Instruction& instruction);

class BoundKernel {
 public:
  /// Its parameters go to the uniforms' slot `index`.
  BoundKernel(Device& device, const Program& program, Phase phase, const Instruction& instruction, std::size_t index,
              const BatchBlock& block, const Places& places);

  /// Records the dispatch for a batch that has `rows` rows of tokens and of sequences, and lies at `batch_offset`.
  void record(Commands& commands, const std::array<std::uint32_t, 2>& rows, std::uint32_t batch_offset) const;

  [[nodiscard]] const std::string& step() const { return step_; }

 private:
  struct Count {
    double fixed = 1;  // product of what does not change
    bool by_rows = false;
    double divisor = 1;
    bool fold = false;
  };

  [[nodiscard]] std::map<std::string, double> values_of(const Program& program, const ProgramPhase& phase,
                                                        const Instruction& instruction) const;
  void resolve_counts(const WgslEntry& entry, const std::map<std::string, double>& values);

  std::string step_;
  std::uint32_t limit_;
  kernels::RowKind rows_;
  const Pipeline* pipeline_ = nullptr;
  std::vector<BindGroup> group_;  // one
  std::vector<Count> counts_;
  std::size_t dynamic_ = 0;
};

}  // namespace candor::webgpu
