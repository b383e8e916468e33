#include "kernels/backward_registry.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/js_value.h"

namespace candor::kernels {
namespace {

bool is_text_list(js::Value value) {
  return js::is_array(value) && std::all_of(value->begin(), value->end(), [](const Json& e) { return e.is_string(); });
}

void validate_operation(const std::string& name, const Json& operation) {
  if (!js::is_object(&operation)) fail(ErrorCode::format, "Backward registry op \"{}\" must be an object", name);
  for (const std::string_view key : {"backward", "grads"})
    if (js::get(&operation, key) == nullptr)
      fail(ErrorCode::format, "Backward registry op \"{}\" is missing \"{}\"", name, key);
  const js::Value backward = js::get(&operation, "backward");
  if (!js::is_string(backward) || !js::truthy(backward))
    fail(ErrorCode::format, "Backward registry op \"{}\".backward must be a non-empty string", name);
  if (!is_text_list(js::get(&operation, "grads")))
    fail(ErrorCode::format, "Backward registry op \"{}\".grads must be an array of strings", name);
  const js::Value transpose = js::get(&operation, "requires_transpose");
  if (!js::nullish(transpose) && !transpose->is_boolean())
    fail(ErrorCode::format, "Backward registry op \"{}\".requires_transpose must be a boolean", name);
  const js::Value notes = js::get(&operation, "notes");
  if (!js::nullish(notes) && !js::is_string(notes))
    fail(ErrorCode::format, "Backward registry op \"{}\".notes must be a string", name);
}

}  // namespace

const Json& validate_backward_registry(const Json& registry) {
  if (!js::is_object(&registry)) fail(ErrorCode::format, "Backward registry must be an object");
  const js::Value ops = js::get(&registry, "ops");
  if (!js::is_object(ops)) fail(ErrorCode::format, "Backward registry ops must be an object");
  const Json by_name = js::spread(ops);
  for (const auto& [name, operation] : by_name.get_ref<const Json::object_t&>()) validate_operation(name, operation);
  return registry;
}

}  // namespace candor::kernels
