// One WebGPU device: buffers, pipelines, submission and reading back. Goals: what the library reports as an error, at
// once or later, becomes an Error that names what was being done; pipelines are made once for each (source, entry,
// constants); nothing else of the interface is seen above this file. Not a goal: knowing kernels or plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/webgpu/adapter.h"
#include "backends/webgpu/requirements.h"

namespace candor::webgpu {

class Device;

/// A buffer on the device; given back when the object goes.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Device& device, api::BufferImpl* handle, std::uint64_t size);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] api::BufferImpl* handle() const { return handle_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  const Device* device_ = nullptr;
  api::BufferImpl* handle_ = nullptr;
  std::uint64_t size_ = 0;
};

/// A part of a buffer that a kernel sees.
struct BufferRange {
  const Buffer* buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

enum class BindingKind : std::uint8_t { read, read_write, uniform };

struct BindingLayout {
  std::uint32_t binding = 0;
  BindingKind kind = BindingKind::read;
  bool dynamic = false;  ///< its offset is given when it is dispatched
};

struct PipelineRequest {
  std::string key;    ///< source digest and entry
  std::string label;  ///< "webgpu/rows.wgsl#rmsnorm"
  std::string_view source;
  std::string entry;
  std::vector<BindingLayout> bindings;
  std::map<std::string, double> constants;
};

class Pipeline {
 public:
  Pipeline(const Device& device, const PipelineRequest& request);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  [[nodiscard]] api::ComputePipelineImpl* handle() const { return handle_; }
  [[nodiscard]] api::BindGroupLayoutImpl* layout() const { return layout_; }

 private:
  const Device& device_;
  api::BindGroupLayoutImpl* layout_ = nullptr;
  api::ComputePipelineImpl* handle_ = nullptr;
};

/// Buffers bound for one pipeline.
class BindGroup {
 public:
  BindGroup(const Device& device, const Pipeline& pipeline, std::span<const BindingLayout> layouts,
            std::span<const BufferRange> ranges);
  ~BindGroup();
  BindGroup(BindGroup&& other) noexcept;
  BindGroup& operator=(BindGroup&&) = delete;
  BindGroup(const BindGroup&) = delete;

  [[nodiscard]] api::BindGroupImpl* handle() const { return handle_; }

 private:
  const Device& device_;
  api::BindGroupImpl* handle_ = nullptr;
};

/// Times of passes, from the device's own clock.
class Timestamps {
 public:
  Timestamps(Device& device, std::uint32_t count);
  ~Timestamps();
  Timestamps(const Timestamps&) = delete;
  Timestamps& operator=(const Timestamps&) = delete;

  [[nodiscard]] api::QuerySetImpl* handle() const { return handle_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] const Buffer& resolved() const { return resolved_; }

 private:
  const Device& device_;
  api::QuerySetImpl* handle_ = nullptr;
  std::uint32_t count_;
  Buffer resolved_;
};

/// Commands that are recorded and then submitted together.
class Commands {
 public:
  explicit Commands(Device& device);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// Opens a pass if none is open.
  void dispatch(const Pipeline& pipeline, const BindGroup& group, std::span<const std::uint32_t> dynamic_offsets,
                std::uint32_t x, std::uint32_t y, std::uint32_t z);
  /// Ends the open pass. The next dispatch's pass writes query `first` when it begins and `first + 1` when it ends.
  void time_next_pass(const Timestamps& timestamps, std::uint32_t first);
  void copy(const Buffer& from, std::uint64_t from_offset, const Buffer& to, std::uint64_t to_offset,
            std::uint64_t size);
  void clear(const Buffer& buffer, std::uint64_t offset, std::uint64_t size);
  void resolve(const Timestamps& timestamps);
  void submit();

 private:
  void begin_pass();
  void end_pass();

  Device& device_;
  api::CommandEncoderImpl* encoder_ = nullptr;
  api::ComputePassEncoderImpl* pass_ = nullptr;
  api::PassTimestampWrites timing_;
};

/// Memory that commands copy to and the host then reads, while others are computed.
class Readback {
 public:
  Readback(Device& device, std::uint64_t size);
  Readback(Readback&&) noexcept = default;
  Readback& operator=(Readback&&) noexcept = default;

  [[nodiscard]] const Buffer& staging() const { return staging_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Asks for the first `bytes` once what was submitted before is done.
  void start(std::uint64_t bytes);
  /// Waits for them. `out` has as many, but for what rounds up to 4.
  void finish(std::span<std::byte> out);

 private:
  struct Answer {
    std::uint32_t status = 0;
    std::string message;
  };
  Device* device_;
  Buffer staging_;
  std::unique_ptr<Answer> answer_;
  api::Future future_;
  std::uint64_t bytes_ = 0;
};

class Device {
 public:
  /// Asks for exactly this, beside what every device has. Throws Error(device) if the adapter lacks any of it.
  Device(Adapter adapter, Requirements requirements);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const Adapter& adapter() const { return adapter_; }
  [[nodiscard]] const api::Functions& functions() const { return adapter_.library()->functions(); }
  [[nodiscard]] api::DeviceImpl* handle() const { return handle_; }
  [[nodiscard]] api::QueueImpl* queue() const { return queue_; }
  [[nodiscard]] const Requirements& requirements() const { return requirements_; }

  /// What is being done from now on, for errors: "step \"layer_both_3_q_proj\"".
  void doing(std::string what) { doing_ = std::move(what); }
  [[nodiscard]] const std::string& doing() const { return doing_; }

  /// A buffer for kernels, of at least `size` bytes, zeroed. Throws Error(device) above what the device was asked for.
  [[nodiscard]] Buffer storage(std::uint64_t size, const std::string& what);
  /// The same for uniforms.
  [[nodiscard]] Buffer uniforms(std::uint64_t size, const std::string& what);
  /// Copies bytes to a buffer, `bytes.size()` and `offset` multiples of 4.
  void write(const Buffer& buffer, std::uint64_t offset, std::span<const std::byte> bytes);
  /// Waits for all that was submitted and copies a part of a buffer out, at any offset that is a multiple of 4.
  void read(const Buffer& buffer, std::uint64_t offset, std::span<std::byte> out);
  /// Waits for all that was submitted.
  void wait();

  /// The pipeline of this request; made at the first.
  [[nodiscard]] const Pipeline& pipeline(const PipelineRequest& request);
  [[nodiscard]] std::size_t pipelines() const { return pipelines_.size(); }

  /// Throws the first error that the library reported since the last call: Error(device) for a lost device or one out
  /// of memory, Error(internal) for what only a mistake in this program can cause.
  void check();

 private:
  struct Report {
    std::mutex mutex;
    bool lost = false;
    bool closing = false;
    api::ErrorType type = api::ErrorType::none;
    std::string message;
  };

  [[nodiscard]] Buffer create(std::uint64_t size, api::Flags usage, const std::string& what);
  [[nodiscard]] api::ShaderModuleImpl* module(const PipelineRequest& request);
  friend class Pipeline;
  friend class Readback;
  friend class Timestamps;
  friend double copy_bandwidth(Device& device);

  Adapter adapter_;
  Requirements requirements_;
  std::unique_ptr<Report> report_;
  api::DeviceImpl* handle_ = nullptr;
  api::QueueImpl* queue_ = nullptr;
  std::string doing_ = "starting";
  std::map<std::string, api::ShaderModuleImpl*> modules_;
  std::map<std::string, std::unique_ptr<Pipeline>> pipelines_;
  std::unique_ptr<Readback> staging_;
};

/// Bytes a second, read and written, of copies between buffers that are larger than caches.
[[nodiscard]] double copy_bandwidth(Device& device);

}  // namespace candor::webgpu
