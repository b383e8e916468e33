#include "plan/provenance.h"

#include <fmt/format.h>

#include <functional>

#include "plan/profiles.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

constexpr std::size_t kTraceBytes = 64u << 20;  // text of all paths; a real session has a few kilobytes

/// The members of an object found by key in constant time, so that an object of many keys costs linear time in all.
class Members {
 public:
  explicit Members(js::Value object) {
    if (!js::is_plain_object(object)) return;
    for (const auto& [key, value] : object->get_ref<const Json::object_t&>()) index_.emplace(key, &value);
  }

  [[nodiscard]] js::Value find(std::string_view key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, const Json*> index_;
};

/// A place in the resolved session, and the same place in the two it was made of.
struct Place {
  const Json& resolved;
  js::Value runtime;
  js::Value manifest;
};

using Visit = std::function<void(const std::string& path, std::string_view source)>;

void for_each_leaf(const Place& place, const std::string& path, const Visit& visit) {
  if (!place.resolved.is_object()) {
    const std::string_view source = place.runtime != nullptr    ? source::kRuntimeSession
                                    : place.manifest != nullptr ? source::kManifest
                                                                : source::kDerived;
    visit(path, source);
    return;
  }
  const Members runtime(place.runtime);
  const Members manifest(place.manifest);
  for (const auto& [key, child] : place.resolved.get_ref<const Json::object_t&>()) {
    const std::string child_path = path.empty() ? key : fmt::format("{}.{}", path, key);
    if (child_path.size() > kTraceBytes)
      refuse("sessionDefaults: the path of a value takes more than {} bytes", kTraceBytes);
    for_each_leaf({child, runtime.find(key), manifest.find(key)}, child_path, visit);
  }
}

Json source_object(std::string_view source) {
  Json out = Json::object();
  out["source"] = source;
  return out;
}

}  // namespace

SessionSources::SessionSources(const Json& resolved_session, js::Value runtime_session, js::Value manifest_session) {
  if (!resolved_session.is_object()) return;
  std::size_t bytes = 0;
  for_each_leaf({resolved_session, runtime_session, manifest_session}, "",
                [&](const std::string& path, std::string_view source) {
                  bytes += path.size();
                  if (bytes > kTraceBytes)
                    refuse("sessionDefaults: the paths of its values take more than {} bytes", kTraceBytes);
                  const auto [found, is_new] = index_.emplace(path, leaves_.size());
                  if (is_new) leaves_.emplace_back(path, source);
                  leaves_[found->second].second = source;
                });
}

std::string_view SessionSources::of(std::string_view path) const {
  const auto found = index_.find(std::string(path));
  return found == index_.end() ? source::kDerived : leaves_[found->second].second;
}

Json SessionSources::to_json() const {
  js::ObjectBuilder out;
  for (const auto& [path, source] : leaves_) out["sessionDefaults." + path] = source_object(source);
  return out.take();
}

void StepTrace::set(const std::string& id, const StepSources& sources) {
  if (js::is_inherited_name(id)) return;
  const auto [found, is_new] = index_.emplace(id, steps_.size());
  if (is_new) steps_.emplace_back(id, sources);
  steps_[found->second].second = sources;
}

Json StepTrace::to_json() const {
  js::ObjectBuilder out;
  for (const auto& [id, sources] : steps_) {
    Json step = Json::object();
    step["precision.inputDtype"] = source_object(sources.input);
    step["precision.mathDtype"] = source_object(sources.math);
    step["precision.accumDtype"] = source_object(sources.accum);
    step["precision.outputDtype"] = source_object(sources.output);
    if (!sources.kv_io.empty()) {
      step["kvIO.readDtype"] = source_object(sources.kv_io);
      step["kvIO.writeDtype"] = source_object(sources.kv_io);
    }
    out[id] = std::move(step);
  }
  return out.take();
}

}  // namespace candor::plan
