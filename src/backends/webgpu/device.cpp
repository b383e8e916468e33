#include "backends/webgpu/device.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

namespace candor::webgpu {
namespace {

constexpr std::uint64_t kWriteBytes = 32ull << 20;  // a write passes through memory of the library's
constexpr std::uint64_t kStagingBytes = 64ull << 10;

api::BufferBindingType binding_type(BindingKind kind) {
  switch (kind) {
    case BindingKind::read:
      return api::BufferBindingType::read_only_storage;
    case BindingKind::read_write:
      return api::BufferBindingType::storage;
    case BindingKind::uniform:
      return api::BufferBindingType::uniform;
  }
  return api::BufferBindingType::undefined;
}

}  // namespace

Buffer::Buffer(const Device& device, api::BufferImpl* handle, std::uint64_t size)
    : device_(&device), handle_(handle), size_(size) {}

Buffer::~Buffer() {
  if (handle_ == nullptr) return;
  device_->functions().BufferDestroy(handle_);
  device_->functions().BufferRelease(handle_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)), size_(other.size_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(size_, other.size_);
  return *this;
}

Pipeline::Pipeline(const Device& device, const PipelineRequest& request) : device_(device) {
  const api::Functions& f = device.functions();
  std::vector<api::BindGroupLayoutEntry> entries;
  for (const BindingLayout& binding : request.bindings) {
    api::BindGroupLayoutEntry& entry = entries.emplace_back();
    entry.binding = binding.binding;
    entry.visibility = api::kStageCompute;
    entry.buffer.type = binding_type(binding.kind);
    entry.buffer.has_dynamic_offset = binding.dynamic ? 1 : 0;
  }
  api::BindGroupLayoutDescriptor layout;
  layout.label = api::view(request.label);
  layout.count = entries.size();
  layout.entries = entries.data();
  layout_ = f.DeviceCreateBindGroupLayout(device.handle(), &layout);
  api::PipelineLayoutDescriptor pipeline_layout;
  pipeline_layout.count = 1;
  pipeline_layout.layouts = &layout_;
  api::PipelineLayoutImpl* const whole = f.DeviceCreatePipelineLayout(device.handle(), &pipeline_layout);

  std::vector<api::ConstantEntry> constants;
  for (const auto& [name, value] : request.constants) constants.push_back({nullptr, api::view(name), value});
  api::ComputePipelineDescriptor descriptor;
  descriptor.label = api::view(request.label);
  descriptor.layout = whole;
  descriptor.compute.module = const_cast<Device&>(device).module(request);
  descriptor.compute.entry = api::view(request.entry);
  descriptor.compute.constant_count = constants.size();
  descriptor.compute.constants = constants.data();
  handle_ = f.DeviceCreateComputePipeline(device.handle(), &descriptor);
  f.PipelineLayoutRelease(whole);
}

Pipeline::~Pipeline() {
  device_.functions().ComputePipelineRelease(handle_);
  device_.functions().BindGroupLayoutRelease(layout_);
}

BindGroup::BindGroup(const Device& device, const Pipeline& pipeline, std::span<const BindingLayout> layouts,
                     std::span<const BufferRange> ranges)
    : device_(device) {
  std::vector<api::BindGroupEntry> entries;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    api::BindGroupEntry& entry = entries.emplace_back();
    entry.binding = layouts[i].binding;
    entry.buffer = ranges[i].buffer->handle();
    entry.offset = ranges[i].offset;
    entry.size = ranges[i].size;
  }
  api::BindGroupDescriptor descriptor;
  descriptor.layout = pipeline.layout();
  descriptor.count = entries.size();
  descriptor.entries = entries.data();
  handle_ = device.functions().DeviceCreateBindGroup(device.handle(), &descriptor);
}

BindGroup::~BindGroup() {
  if (handle_ != nullptr) device_.functions().BindGroupRelease(handle_);
}

BindGroup::BindGroup(BindGroup&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Timestamps::Timestamps(Device& device, std::uint32_t count) : device_(device), count_(count) {
  api::QuerySetDescriptor descriptor;
  descriptor.count = count;
  handle_ = device.functions().DeviceCreateQuerySet(device.handle(), &descriptor);
  resolved_ =
      device.create(count * sizeof(std::uint64_t), api::kUsageQueryResolve | api::kUsageCopySource, "timestamps");
}

Timestamps::~Timestamps() {
  device_.functions().QuerySetRelease(handle_);
}

Commands::Commands(Device& device)
    : device_(device), encoder_(device.functions().DeviceCreateCommandEncoder(device.handle(), nullptr)) {}

Commands::~Commands() {
  if (encoder_ == nullptr) return;
  end_pass();
  device_.functions().CommandEncoderRelease(encoder_);
}

void Commands::begin_pass() {
  if (pass_ != nullptr) return;
  api::ComputePassDescriptor descriptor;
  if (timing_.queries != nullptr) descriptor.timestamps = &timing_;
  pass_ = device_.functions().CommandEncoderBeginComputePass(encoder_, &descriptor);
  timing_ = {};
}

void Commands::end_pass() {
  if (pass_ == nullptr) return;
  device_.functions().ComputePassEncoderEnd(pass_);
  device_.functions().ComputePassEncoderRelease(pass_);
  pass_ = nullptr;
}

void Commands::dispatch(const Pipeline& pipeline, const BindGroup& group,
                        std::span<const std::uint32_t> dynamic_offsets, std::uint32_t x, std::uint32_t y,
                        std::uint32_t z) {
  begin_pass();
  const api::Functions& f = device_.functions();
  f.ComputePassEncoderSetPipeline(pass_, pipeline.handle());
  f.ComputePassEncoderSetBindGroup(pass_, 0, group.handle(), dynamic_offsets.size(), dynamic_offsets.data());
  f.ComputePassEncoderDispatchWorkgroups(pass_, x, y, z);
}

void Commands::time_next_pass(const Timestamps& timestamps, std::uint32_t first) {
  end_pass();
  timing_.queries = timestamps.handle();
  timing_.begin = first;
  timing_.end = first + 1;
}

void Commands::copy(const Buffer& from, std::uint64_t from_offset, const Buffer& to, std::uint64_t to_offset,
                    std::uint64_t size) {
  end_pass();
  device_.functions().CommandEncoderCopyBufferToBuffer(encoder_, from.handle(), from_offset, to.handle(), to_offset,
                                                       size);
}

void Commands::clear(const Buffer& buffer, std::uint64_t offset, std::uint64_t size) {
  end_pass();
  device_.functions().CommandEncoderClearBuffer(encoder_, buffer.handle(), offset, size);
}

void Commands::resolve(const Timestamps& timestamps) {
  end_pass();
  device_.functions().CommandEncoderResolveQuerySet(encoder_, timestamps.handle(), 0, timestamps.count(),
                                                    timestamps.resolved().handle(), 0);
}

void Commands::submit() {
  end_pass();
  const api::Functions& f = device_.functions();
  api::CommandBufferImpl* const commands = f.CommandEncoderFinish(encoder_, nullptr);
  f.QueueSubmit(device_.queue(), 1, &commands);
  f.CommandBufferRelease(commands);
  f.CommandEncoderRelease(encoder_);
  encoder_ = nullptr;
  device_.check();
}

namespace {

/// What every device has (WebGPU, "limits"); no less can be asked for.
Requirements with_defaults(Requirements wanted) {
  Requirements defaults;
  defaults.binding_bytes = 128ull << 20;
  defaults.buffer_bytes = 256ull << 20;
  defaults.workgroup_bytes = 16384;
  defaults.workgroup_size = 256;
  defaults.storage_buffers = 8;
  wanted.add(defaults);
  wanted.binding_bytes = (wanted.binding_bytes + 3) / 4 * 4;
  return wanted;
}

}  // namespace

Device::Device(Adapter adapter, Requirements requirements)
    : adapter_(std::move(adapter)),
      requirements_(with_defaults(std::move(requirements))),
      report_(std::make_unique<Report>()) {
  if (const auto lacks = missing(requirements_, adapter_); !lacks.empty())
    fail(ErrorCode::device, "adapter \"{}\" has not: {}", printable(adapter_.name()), fmt::join(lacks, ", "));
  std::vector<std::uint32_t> numbers;
  for (const std::string& feature : requirements_.features) numbers.push_back(feature_number(feature));
  api::Limits limits;
  limits.max_storage_binding_bytes = requirements_.binding_bytes;
  limits.max_buffer_bytes = requirements_.buffer_bytes;
  limits.max_workgroup_bytes = static_cast<std::uint32_t>(requirements_.workgroup_bytes);
  limits.max_workgroup_invocations = requirements_.workgroup_size;
  limits.max_workgroup_size_x = requirements_.workgroup_size;
  limits.max_storage_buffers = requirements_.storage_buffers;
  api::DeviceDescriptor descriptor;
  descriptor.feature_count = numbers.size();
  descriptor.features = numbers.data();
  descriptor.limits = &limits;
  descriptor.lost.mode = api::CallbackMode::allow_spontaneous;
  descriptor.lost.userdata1 = report_.get();
  descriptor.lost.callback = [](api::DeviceImpl* const*, std::uint32_t, api::StringView message, void* to, void*) {
    Report& report = *static_cast<Report*>(to);
    const std::lock_guard lock(report.mutex);
    if (report.closing) return;
    report.lost = true;
    report.message = api::text(message);
  };
  descriptor.error.userdata1 = report_.get();
  descriptor.error.callback = [](api::DeviceImpl* const*, api::ErrorType type, api::StringView message, void* to,
                                 void*) {
    Report& report = *static_cast<Report*>(to);
    const std::lock_guard lock(report.mutex);
    if (report.type != api::ErrorType::none || report.lost) return;  // the first is the cause of the others
    report.type = type;
    report.message = api::text(message);
  };
  std::pair<api::DeviceImpl*, std::string> answer;
  api::CallbackInfo<api::DeviceCallback> callback;
  callback.callback = [](std::uint32_t status, api::DeviceImpl* device, api::StringView message, void* out, void*) {
    auto& result = *static_cast<std::pair<api::DeviceImpl*, std::string>*>(out);
    if (status == api::kSuccess) result.first = device;
    result.second = api::text(message);
  };
  callback.userdata1 = &answer;
  adapter_.library()->wait(functions().AdapterRequestDevice(adapter_.handle(), &descriptor, callback), "a device");
  if (answer.first == nullptr)
    fail(ErrorCode::device, "adapter \"{}\" gives no device: {}", printable(adapter_.name()),
         printable(answer.second, 300));
  handle_ = answer.first;
  queue_ = functions().DeviceGetQueue(handle_);
}

Device::~Device() {
  if (handle_ == nullptr) return;
  {
    const std::lock_guard lock(report_->mutex);
    report_->closing = true;
  }
  staging_.reset();
  pipelines_.clear();
  for (const auto& [name, module] : modules_) functions().ShaderModuleRelease(module);
  functions().QueueRelease(queue_);
  functions().DeviceDestroy(handle_);
  functions().DeviceRelease(handle_);
  functions().InstanceProcessEvents(adapter_.library()->instance());
}

Buffer Device::create(std::uint64_t size, api::Flags usage, const std::string& what) {
  const std::uint64_t bytes = checked_align(std::max<std::uint64_t>(size, 4), 4, what);
  if (bytes > requirements_.buffer_bytes)
    fail(ErrorCode::device, "{} needs a buffer of {}, and the device was asked for {}", what, format_bytes(bytes),
         format_bytes(requirements_.buffer_bytes));
  api::BufferDescriptor descriptor;
  descriptor.label = api::view(what);
  descriptor.usage = usage;
  descriptor.size = bytes;
  api::BufferImpl* const handle = functions().DeviceCreateBuffer(handle_, &descriptor);
  check();
  if (handle == nullptr) fail(ErrorCode::device, "the device gives no buffer of {} for {}", format_bytes(bytes), what);
  return {*this, handle, bytes};
}

Buffer Device::storage(std::uint64_t size, const std::string& what) {
  if (size > requirements_.binding_bytes)
    fail(ErrorCode::device, "{} needs {} in one binding, and the device was asked for {}", what, format_bytes(size),
         format_bytes(requirements_.binding_bytes));
  return create(size, api::kUsageStorage | api::kUsageCopySource | api::kUsageCopyTarget, what);
}

Buffer Device::uniforms(std::uint64_t size, const std::string& what) {
  return create(size, api::kUsageUniform | api::kUsageCopyTarget, what);
}

void Device::write(const Buffer& buffer, std::uint64_t offset, std::span<const std::byte> bytes) {
  for (std::size_t done = 0; done < bytes.size(); done += kWriteBytes) {
    const auto part = bytes.subspan(done, std::min<std::size_t>(kWriteBytes, bytes.size() - done));
    functions().QueueWriteBuffer(queue_, buffer.handle(), offset + done, part.data(), part.size());
    // Otherwise a model's weights would wait in the library's memory, all at once.
    if (bytes.size() > kWriteBytes) wait();
  }
}

void Device::read(const Buffer& buffer, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return;
  const std::uint64_t size = checked_align(out.size(), 4, "read-back");
  if (!staging_ || staging_->staging().size() < size)
    staging_ = std::make_unique<Readback>(*this, std::max(size, kStagingBytes));
  Commands commands(*this);
  commands.copy(buffer, offset, staging_->staging(), 0, size);
  commands.submit();
  staging_->start(size);
  staging_->finish(out);
}

Readback::Readback(Device& device, std::uint64_t size)
    : device_(&device), staging_(device.create(size, api::kUsageMapRead | api::kUsageCopyTarget, "read-back")) {}

void Readback::start(std::uint64_t bytes) {
  bytes_ = bytes;
  answer_ = std::make_unique<Answer>();
  api::CallbackInfo<api::StatusCallback> callback;
  callback.callback = [](std::uint32_t status, api::StringView message, void* to, void*) {
    *static_cast<Answer*>(to) = {status, api::text(message)};
  };
  callback.userdata1 = answer_.get();
  future_ = device_->functions().BufferMapAsync(staging_.handle(), api::kMapRead, 0, bytes, callback);
}

void Readback::finish(std::span<std::byte> out) {
  device_->adapter().library()->wait(future_, "the device");
  device_->check();
  if (answer_->status != api::kSuccess)
    fail(ErrorCode::device, "WebGPU, {}: what was computed cannot be read back: {}", device_->doing(),
         printable(answer_->message, 300));
  std::memcpy(out.data(), device_->functions().BufferGetConstMappedRange(staging_.handle(), 0, bytes_), out.size());
  device_->functions().BufferUnmap(staging_.handle());
}

void Device::wait() {
  api::CallbackInfo<api::WorkDoneCallback> callback;
  callback.callback = [](std::uint32_t, void*, void*) {};
  adapter_.library()->wait(functions().QueueOnSubmittedWorkDone(queue_, callback), "the device");
  check();
}

api::ShaderModuleImpl* Device::module(const PipelineRequest& request) {
  const std::string key = request.key.substr(0, request.key.find('#'));
  api::ShaderModuleImpl*& module = modules_[key];
  if (module == nullptr) {
    api::ShaderSourceWgsl source;
    source.code = api::view(request.source);
    api::ShaderModuleDescriptor descriptor;
    descriptor.next = &source.chain;
    descriptor.label = api::view(request.label);
    module = functions().DeviceCreateShaderModule(handle_, &descriptor);
    check();
  }
  return module;
}

const Pipeline& Device::pipeline(const PipelineRequest& request) {
  std::string key = request.key;
  for (const auto& [name, value] : request.constants) key += fmt::format(" {}={}", name, value);
  std::unique_ptr<Pipeline>& pipeline = pipelines_[key];
  if (!pipeline) {
    try {
      pipeline = std::make_unique<Pipeline>(*this, request);
      check();
    } catch (...) {
      pipelines_.erase(key);
      throw;
    }
  }
  return *pipeline;
}

void Device::check() {
  const std::lock_guard lock(report_->mutex);
  if (report_->lost)
    fail(ErrorCode::device, "the WebGPU device was lost, {}: {}", doing_, printable(report_->message, 300));
  if (report_->type == api::ErrorType::none) return;
  const auto type = std::exchange(report_->type, api::ErrorType::none);
  const std::string message = std::exchange(report_->message, {});
  if (type == api::ErrorType::out_of_memory)
    fail(ErrorCode::device, "the WebGPU device has no more memory, {}: {}", doing_, printable(message, 300));
  fail(ErrorCode::internal, "WebGPU, {}: {}", doing_, printable(message, 1000));
}

double copy_bandwidth(Device& device) {
  constexpr std::uint64_t kMostBytes = 512ull << 20;
  const std::uint64_t size = std::min(kMostBytes, device.requirements().buffer_bytes) / 256 * 256;
  const Buffer from = device.create(size, api::kUsageCopySource | api::kUsageCopyTarget, "the source of a copy");
  const Buffer to = device.create(size, api::kUsageCopySource | api::kUsageCopyTarget, "the target of a copy");
  const auto seconds = [&](int copies) {
    const auto start = std::chrono::steady_clock::now();
    Commands commands(device);
    for (int i = 0; i < copies; ++i) commands.copy(from, 0, to, 0, size);
    commands.submit();
    device.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // The difference between many and few leaves out what a submission costs.
  constexpr int kFew = 1, kMany = 5;
  (void)seconds(kFew);  // clears the buffers
  double few = seconds(kFew), many = seconds(kMany);
  for (int round = 0; round < 3; ++round) {
    few = std::min(few, seconds(kFew));
    many = std::min(many, seconds(kMany));
  }
  const double each = many > few ? (many - few) / (kMany - kFew) : many / kMany;
  return 2 * static_cast<double>(size) / each;
}

}  // namespace candor::webgpu
