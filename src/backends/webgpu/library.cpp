#include "backends/webgpu/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace candor::webgpu {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFile = "libwebgpu_wrapper.so";

/// Where scripts/get-webgpu puts the library: beside an installed program, and in the user's data folder.
std::vector<fs::path> installed_places() {
  std::vector<fs::path> places;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) places.push_back(program.parent_path().parent_path() / "lib/candor" / kFile);
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  if (data != nullptr && *data != '\0') {
    places.push_back(fs::path(data) / "candor" / kFile);
  } else if (home != nullptr && *home != '\0') {
    places.push_back(fs::path(home) / ".local/share/candor" / kFile);
  }
  return places;
}

fs::path find_library(const std::string& asked) {
  if (!asked.empty()) return asked;
  if (const char* variable = std::getenv("CANDOR_WEBGPU_LIB"); variable != nullptr && *variable != '\0')
    return variable;
  std::vector<std::string> tried;
  for (const fs::path& place : installed_places()) {
    if (fs::exists(place)) return place;
    tried.push_back(place.string());
  }
  fail(ErrorCode::device,
       "no WebGPU library is installed (looked for {}); scripts/get-webgpu fetches it, and --webgpu-lib or "
       "CANDOR_WEBGPU_LIB names another place",
       fmt::join(tried, ", "));
}

template <typename Function>
void resolve(void* handle, const fs::path& path, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(handle, name));
  if (out == nullptr)
    fail(ErrorCode::device, "{}: has no function {}, so it is no WebGPU library of the kind this program needs",
         path.string(), name);
}

void resolve_all(void* handle, const fs::path& path, api::Functions& f) {
#define CANDOR_RESOLVE(name) resolve(handle, path, "wgpu" #name, f.name)
  CANDOR_RESOLVE(CreateInstance);
  CANDOR_RESOLVE(InstanceRelease);
  CANDOR_RESOLVE(InstanceRequestAdapter);
  CANDOR_RESOLVE(InstanceWaitAny);
  CANDOR_RESOLVE(InstanceProcessEvents);
  CANDOR_RESOLVE(AdapterGetInfo);
  CANDOR_RESOLVE(AdapterInfoFreeMembers);
  CANDOR_RESOLVE(AdapterGetLimits);
  CANDOR_RESOLVE(AdapterGetFeatures);
  CANDOR_RESOLVE(SupportedFeaturesFreeMembers);
  CANDOR_RESOLVE(AdapterRequestDevice);
  CANDOR_RESOLVE(AdapterRelease);
  CANDOR_RESOLVE(DeviceGetQueue);
  CANDOR_RESOLVE(DeviceCreateBuffer);
  CANDOR_RESOLVE(DeviceCreateShaderModule);
  CANDOR_RESOLVE(DeviceCreateBindGroupLayout);
  CANDOR_RESOLVE(DeviceCreatePipelineLayout);
  CANDOR_RESOLVE(DeviceCreateBindGroup);
  CANDOR_RESOLVE(DeviceCreateComputePipeline);
  CANDOR_RESOLVE(DeviceCreateCommandEncoder);
  CANDOR_RESOLVE(DeviceCreateQuerySet);
  CANDOR_RESOLVE(DeviceDestroy);
  CANDOR_RESOLVE(DeviceRelease);
  CANDOR_RESOLVE(QueueWriteBuffer);
  CANDOR_RESOLVE(QueueSubmit);
  CANDOR_RESOLVE(QueueOnSubmittedWorkDone);
  CANDOR_RESOLVE(QueueRelease);
  CANDOR_RESOLVE(BufferMapAsync);
  CANDOR_RESOLVE(BufferGetConstMappedRange);
  CANDOR_RESOLVE(BufferUnmap);
  CANDOR_RESOLVE(BufferDestroy);
  CANDOR_RESOLVE(BufferRelease);
  CANDOR_RESOLVE(ShaderModuleRelease);
  CANDOR_RESOLVE(BindGroupLayoutRelease);
  CANDOR_RESOLVE(PipelineLayoutRelease);
  CANDOR_RESOLVE(BindGroupRelease);
  CANDOR_RESOLVE(ComputePipelineRelease);
  CANDOR_RESOLVE(QuerySetRelease);
  CANDOR_RESOLVE(CommandEncoderBeginComputePass);
  CANDOR_RESOLVE(CommandEncoderCopyBufferToBuffer);
  CANDOR_RESOLVE(CommandEncoderClearBuffer);
  CANDOR_RESOLVE(CommandEncoderResolveQuerySet);
  CANDOR_RESOLVE(CommandEncoderFinish);
  CANDOR_RESOLVE(CommandEncoderRelease);
  CANDOR_RESOLVE(CommandBufferRelease);
  CANDOR_RESOLVE(ComputePassEncoderSetPipeline);
  CANDOR_RESOLVE(ComputePassEncoderSetBindGroup);
  CANDOR_RESOLVE(ComputePassEncoderDispatchWorkgroups);
  CANDOR_RESOLVE(ComputePassEncoderEnd);
  CANDOR_RESOLVE(ComputePassEncoderRelease);
#undef CANDOR_RESOLVE
}

}  // namespace

Library::Library(const std::string& path) : path_(find_library(path)) {
  // The library stays loaded until the process ends: drivers keep threads and exit handlers of their own.
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    fail(ErrorCode::device, "{}: the WebGPU library cannot be loaded: {}", path_.string(),
         printable(reason != nullptr ? reason : "no reason given", 300));
  }
  resolve_all(handle_, path_, functions_);
  api::InstanceDescriptor descriptor;
  descriptor.capabilities.timed_wait_any_enable = 1;
  descriptor.capabilities.timed_wait_any_max_count = 1;
  instance_ = functions_.CreateInstance(&descriptor);
  if (instance_ == nullptr) fail(ErrorCode::device, "{}: gives no WebGPU instance", path_.string());
}

Library::~Library() {
  if (instance_ != nullptr) functions_.InstanceRelease(instance_);
}

void Library::wait(api::Future future, const char* what) const {
  api::FutureWaitInfo info{future, 0};
  const std::uint32_t status = functions_.InstanceWaitAny(instance_, 1, &info, api::kUndefinedU64);
  if (status != api::kSuccess || info.completed == 0)
    fail(ErrorCode::device, "WebGPU: waiting for {} failed with status {}", what, status);
}

}  // namespace candor::webgpu
