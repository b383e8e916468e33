#include "plan/merge.h"

#include <utility>

namespace candor::plan {
namespace {

void merge_into(Json& base, const Json& override_value) {
  if (!base.is_object() || !override_value.is_object()) {
    base = override_value;
    return;
  }
  js::ObjectBuilder merged(std::move(base));
  for (const auto& [key, value] : override_value.get_ref<const Json::object_t&>())
    if (key != "__proto__") merge_into(merged[key], value);  // a new key starts as null
  base = merged.take();
}

}  // namespace

Json merge_runtime_values(js::Value base, js::Value override_value) {
  Json merged = base == nullptr ? Json() : *base;
  if (override_value != nullptr) merge_into(merged, *override_value);
  return merged;
}

}  // namespace candor::plan
