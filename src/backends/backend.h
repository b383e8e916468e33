// What a backend does for the runtime: answers how large a kernel's memory is while a Program is laid out, takes the
// Program and its weights once, and then runs a phase of it over a batch. Not a goal: choosing a kernel or noticing a
// model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/program.h"
#include "base/json.h"
#include "kernels/batch.h"

namespace candor {

struct WeightLayout {
  std::string name;  ///< empty: the kernel reads the stored bytes
  std::uint64_t bytes = 0;
};

/// Called after an instruction ran, with its place among those of its phase; its result may be read with
/// Backend::read_value until the next one runs.
using InstructionObserver = std::function<void(Phase phase, std::size_t instruction)>;

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Device, instruction set, threads: what a receipt records.
  [[nodiscard]] virtual Json describe() const = 0;

  /// Whether the device has a feature that a kernel's registry entry names under `requires`: "shader-f16".
  [[nodiscard]] virtual bool has_feature(std::string_view feature) const = 0;

  /// Bytes a second that copying on the device reads and writes, measured now; nothing for a backend whose memory is
  /// measured otherwise.
  [[nodiscard]] virtual std::optional<double> measure_copy() { return std::nullopt; }

  /// Whether weights, caches and slots take this machine's main memory.
  [[nodiscard]] virtual bool in_main_memory() const { return true; }

  /// Whether each slot that is alive is a buffer of its own; otherwise all lie in one arena.
  [[nodiscard]] virtual bool separate_slots() const { return false; }

  /// The following throw Error(plan) if the backend has no such kernel.
  [[nodiscard]] virtual WeightLayout weight_layout(const Instruction& user, Encoding encoding, std::uint64_t rows,
                                                   std::uint64_t cols) const = 0;
  [[nodiscard]] virtual std::uint64_t kv_page_bytes(const Instruction& attention, std::uint32_t positions,
                                                    Encoding encoding) const = 0;
  [[nodiscard]] virtual std::uint64_t scratch_bytes(const Instruction& instruction, std::uint32_t src_cols,
                                                    std::uint32_t dst_cols, const ProgramLimits& limits) const = 0;

  /// The stored bytes of a weight. They stay valid as long as the backend if its layout is the stored one, else until
  /// the next call.
  using WeightSource = std::function<std::span<const std::byte>(const ProgramWeight&)>;
  /// Allocates and loads everything the Program names. `progress` is called with bytes done.
  virtual void load(Program program, const WeightSource& weights,
                    const std::function<void(std::uint64_t)>& progress) = 0;

  /// Runs a phase. `observer` may be null.
  virtual void run(Phase phase, const Batch& batch, const InstructionObserver* observer) = 0;

  /// Seconds of each instruction of a phase over a batch, by the device's own clock; nothing where it has none. What an
  /// instruction waits for counts to it.
  [[nodiscard]] virtual std::optional<std::vector<double>> step_seconds(Phase phase, const Batch& batch);

  /// How many decode runs one submission can hold, each on the tokens that the one before sampled.
  [[nodiscard]] virtual std::uint32_t chained_runs() const { return 1; }
  /// Whether a submission can be made before the tokens of the one before are read.
  [[nodiscard]] virtual bool overlaps_reads() const { return false; }
  /// Starts decode once for each batch, at most chained_runs(); the tokens of all but the first are what the run before
  /// wrote to `sampled`, whatever the batch says, and with `continued` the first one's too.
  virtual void submit_chained(std::span<const Batch> batches, std::uint32_t sampled, bool continued);
  /// Waits for the oldest submission that was not collected; the tokens it sampled, run by run.
  virtual std::vector<std::uint32_t> collect_chained();
  /// Both, one after the other.
  std::vector<std::uint32_t> run_chained(std::span<const Batch> batches, std::uint32_t sampled);

  /// Copies a KV page in every cache, between runs. Throws Error(unsupported) where the backend cannot.
  virtual void copy_kv_page(std::uint32_t from, std::uint32_t to);

  /// The rows of a value of the last run, densely packed (cols elements a row); throws Error(internal) for a value that
  /// was overwritten by then.
  virtual void read_value(Phase phase, std::uint32_t value, std::span<std::byte> out) const = 0;
  [[nodiscard]] virtual std::uint32_t value_rows(Phase phase, std::uint32_t value) const = 0;
};

}  // namespace candor
