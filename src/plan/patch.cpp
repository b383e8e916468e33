#include "plan/patch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "plan/schema.h"

namespace candor::plan {
namespace {

constexpr std::array<std::string_view, 4> kMutableFields = {"precision", "kvIO", "constants", "entry"};

/// One list of the patch. A text counts as its characters, none of which is a valid entry; so only the empty one is
/// read as no entries.
const Json& entries(js::Value patch, std::string_view name) {
  static const Json kNone = Json::array();
  static const Json kOneCharacter = Json::array({""});
  const js::Value list = js::get(patch, name);
  if (js::nullish(list)) return kNone;
  if (js::is_string(list)) return js::truthy(list) ? kOneCharacter : kNone;
  if (!js::is_array(list)) refuse_type(fmt::format("executionPatch.{}", name), "an array", list);
  return *list;
}

/// A step's id, as far as ids are compared: by type and value, objects never equal. Nothing for an object.
std::optional<std::string> identity(js::Value id) {
  if (js::is_object(id)) return std::nullopt;
  const std::string_view type = js::is_string(id) ? "text" : "other";
  return fmt::format("{} {}", type, js::to_string(id));
}

std::optional<std::string> identity_of_step(const Json& step) {
  return identity(js::get(&step, "id"));
}

using Positions = std::unordered_map<std::string, std::size_t>;  // by id

const std::string& target_id(const Json& entry, std::string_view list, const Positions& by_id) {
  const js::Value id = js::get(&entry, "id");
  if (!js::is_string(id)) refuse("executionPatch.{} entries require id", list);
  const auto& text = id->get_ref<const std::string&>();
  if (!by_id.contains(text)) refuse("executionPatch.{} target \"{}\" does not exist", list, text);
  return text;
}

void check_set(const Json& entry, const Positions& by_id) {
  const std::string& id = target_id(entry, "set", by_id);
  for (const auto& member : entry.get_ref<const Json::object_t&>()) {
    const std::string& key = member.first;
    if (key == "id" || std::find(kMutableFields.begin(), kMutableFields.end(), key) != kMutableFields.end()) continue;
    refuse("executionPatch.set \"{}\" cannot mutate \"{}\"", id, key);
  }
}

void apply_set(Json& step, const Json& entry) {
  for (const std::string_view field : kMutableFields)
    if (const js::Value value = js::get(&entry, field)) js::set(step, field, *value);
}

/// The list of steps while `add` entries are put in. Steps stay where they were made; only an order of indices changes.
class StepList {
 public:
  explicit StepList(std::vector<Json> steps) : steps_(std::move(steps)), inserted_after_(steps_.size(), kNone) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      order_.push_back(static_cast<std::uint32_t>(i));
      if (const auto id = identity_of_step(steps_[i])) index_.emplace(*id, i);
    }
  }

  void add(const Json& entry) {
    const js::Value step = js::get(&entry, "step");
    if (!js::is_object(step)) refuse("executionPatch.add requires a step payload");
    const js::Value before = js::get(&entry, "insertBefore");
    const js::Value after = js::get(&entry, "insertAfter");
    const bool has_before = js::is_string(before) && js::truthy(before);
    const bool has_after = js::is_string(after) && js::truthy(after);
    if (has_before == has_after) refuse("executionPatch.add requires exactly one of insertBefore or insertAfter");
    const auto id = identity_of_step(*step);
    if (id && index_.contains(*id))
      refuse("executionPatch.add step id \"{}\" already exists", js::to_string(js::get(step, "id")));
    const js::Value anchor = has_before ? before : after;
    const auto found = index_.find(*identity(anchor));
    if (found == index_.end()) refuse("executionPatch.add anchor \"{}\" not found", js::to_string(anchor));
    const auto anchor_index = static_cast<std::uint32_t>(found->second);
    insert(*step, id, position(anchor_index, has_after), has_after && id ? anchor_index : kNone);
  }

  /// The steps in their order. The list is empty afterwards.
  [[nodiscard]] std::vector<Json> take() {
    std::vector<Json> out;
    out.reserve(order_.size());
    for (const std::uint32_t i : order_) out.push_back(std::move(steps_[i]));
    return out;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  [[nodiscard]] std::size_t position(std::uint32_t anchor, bool after) const {
    auto at = static_cast<std::size_t>(std::find(order_.begin(), order_.end(), anchor) - order_.begin());
    if (!after) return at;
    ++at;
    // Steps put after this anchor before keep their order.
    while (at < order_.size() && inserted_after_[order_[at]] == anchor) ++at;
    return at;
  }

  void insert(const Json& step, const std::optional<std::string>& id, std::size_t at, std::uint32_t anchor) {
    if (steps_.size() >= limits::steps) refuse("execution.steps after the patch: more than {} steps", limits::steps);
    const auto index = static_cast<std::uint32_t>(steps_.size());
    if (id) index_.emplace(*id, index);
    steps_.push_back(step);
    inserted_after_.push_back(anchor);
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(at), index);
  }

  std::vector<Json> steps_;
  std::vector<std::uint32_t> inserted_after_;  // by step: the anchor it was put after by this patch
  std::vector<std::uint32_t> order_;
  std::unordered_map<std::string, std::size_t> index_;  // by identity
};

}  // namespace

std::vector<Json> apply_patch(std::vector<Json> steps, js::Value patch) {
  if (!js::truthy(patch)) return steps;
  Positions by_id;
  for (std::size_t i = 0; i < steps.size(); ++i) by_id.emplace(js::get(&steps[i], "id")->get<std::string>(), i);
  for (const Json& entry : entries(patch, "set")) check_set(entry, by_id);
  std::unordered_set<std::string> removed;
  for (const Json& entry : entries(patch, "remove")) removed.insert(target_id(entry, "remove", by_id));
  // `remove` is read as a list a second time, which an empty text does not survive.
  if (js::is_string(js::get(patch, "remove")))
    refuse_type("executionPatch.remove", "an array", js::get(patch, "remove"));

  for (const Json& entry : entries(patch, "set")) apply_set(steps[by_id.at(entry["id"].get<std::string>())], entry);
  std::erase_if(steps, [&](const Json& step) { return removed.contains(step["id"].get_ref<const std::string&>()); });
  StepList list(std::move(steps));
  for (const Json& entry : entries(patch, "add")) list.add(entry);
  return list.take();
}

PatchIndex index_patch(js::Value patch) {
  PatchIndex index;
  if (!js::is_object(patch)) return index;
  for (const Json& entry : entries(patch, "add")) {
    const js::Value id = js::at_path(&entry, {"step", "id"});
    if (js::is_string(id) && js::truthy(id)) index.added.insert(id->get<std::string>());
  }
  for (const Json& entry : entries(patch, "set")) {
    const std::string id = js::get(&entry, "id")->get<std::string>();
    if (const js::Value precision = js::get(&entry, "precision"); js::is_object(precision)) {
      const auto fields = js::keys(precision);
      index.precision_fields[id] = {fields.begin(), fields.end()};
    }
    if (js::is_object(js::get(&entry, "kvIO"))) index.kv_io.insert(id);
  }
  return index;
}

}  // namespace candor::plan
