// A model bound to a backend with its weights in memory, ready to run. Made once; one session (session.h) at a time
// runs on it, because the KV cache is the backend's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "runtime/compiled_model.h"

namespace candor::runtime {

inline constexpr std::uint32_t kDefaultPrefillRows = 256;

struct LoadOptions {
  unsigned threads = 0;         ///< 0: one for each processor the process may use
  std::string isa;              ///< empty: the best here
  std::string webgpu_library;   ///< empty: see backends/webgpu/library.h
  std::string adapter;          ///< part of a WebGPU adapter's name; empty: the only one
  std::uint32_t context = 0;    ///< 0: session kvcache.maxSeqLen, else the model's, at most kDefaultContext
  std::uint32_t sequences = 1;  ///< sequences held at once
  /// Positions of texts computed before that are kept beside the sequences (Session::begin); needs layout paged. 0:
  /// none.
  std::uint32_t prefix_positions = 0;
  std::uint32_t prefill_rows = kDefaultPrefillRows;  ///< rows of a prefill chunk; changes no bit of a result
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

class LoadedModel {
 public:
  /// Binds, checks the memory, then loads. Throws Error: plan, resource, device.
  LoadedModel(CompiledModel compiled, const LoadOptions& options);

  [[nodiscard]] const CompiledModel& compiled() const { return compiled_; }
  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] Backend& backend() { return *backend_; }
  [[nodiscard]] std::uint32_t context() const { return program_.limits.context; }

 private:
  /// Bytes of a tensor that are being packed.
  struct Packing {
    const TensorInfo* tensor = nullptr;
    std::uint64_t first = 0, size = 0;
  };

  [[nodiscard]] std::span<const std::byte> stored_bytes(const ProgramWeight& weight);
  void drop_packed();

  CompiledModel compiled_;
  std::vector<std::vector<std::byte>> joined_;  // tensors cut across shards that are read as they are stored
  std::vector<std::byte> packing_;              // such a tensor while it is packed
  Packing packed_;
  std::unique_ptr<Backend> backend_;
  Program program_;
};

/// The Program of a plan on a backend, without loading it (`candor plan program`).
[[nodiscard]] Program bind_model(const CompiledModel& compiled, const Backend& backend, const LoadOptions& options);
[[nodiscard]] std::unique_ptr<Backend> make_backend(const std::string& name, const LoadOptions& options);

}  // namespace candor::runtime
