#include "runtime/model_diff.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace candor::runtime {
namespace {

using plan::Change;

/// Ids of the steps that read each tensor, by its name.
std::map<std::string, std::set<std::string>> readers_of(const plan::Dataflow& flow) {
  std::map<std::string, std::set<std::string>> readers;
  for (const plan::PhaseFlow* phase : {&flow.prefill, &flow.decode})
    for (const plan::StepInstance& step : phase->steps)
      for (const std::uint32_t weight : step.weights) readers[flow.weights[weight].tensor].insert(step.step->id);
  return readers;
}

Json describe_tensor(const TensorInfo& tensor) {
  Json out{{"encoding", to_string(tensor.encoding)}, {"shape", tensor.shape}};
  if (!tensor.sha256.empty()) out["sha256"] = tensor.sha256;
  return out;
}

std::vector<Change> diff_tensors(const CompiledModel& a, const CompiledModel& b) {
  const auto readers_a = readers_of(a.flow);
  const auto readers_b = readers_of(b.flow);
  std::vector<Change> out;
  const auto add = [&](const std::string& name, Change change) {
    std::set<std::string> steps;
    for (const auto* readers : {&readers_a, &readers_b})
      if (const auto found = readers->find(name); found != readers->end())
        steps.insert(found->second.begin(), found->second.end());
    change.touches.assign(steps.begin(), steps.end());
    out.push_back(std::move(change));
  };
  for (const TensorInfo& tensor : a.source.tensors()) {
    const TensorInfo* other = b.source.find(tensor.name);
    if (!other) {
      add(tensor.name, {"tensors", tensor.name, "", to_js_json(describe_tensor(tensor)), "", {}});
      continue;
    }
    Json before = describe_tensor(tensor);
    Json after = describe_tensor(*other);
    // A digest that only one file states says nothing about a difference.
    if (!before.contains("sha256") || !after.contains("sha256")) {
      before.erase("sha256");
      after.erase("sha256");
    }
    for (Change& change : plan::diff_json("tensors", before, after))
      add(tensor.name,
          {"tensors", tensor.name, std::move(change.subject), std::move(change.before), std::move(change.after), {}});
  }
  for (const TensorInfo& tensor : b.source.tensors())
    if (!a.source.find(tensor.name))
      add(tensor.name, {"tensors", tensor.name, "", "", to_js_json(describe_tensor(tensor)), {}});
  return out;
}

/// The Program's summary without what the plan's own changes say; of neighbouring caches that are alike, one stands for
/// all.
Json program_facts(const Program& program) {
  Json out = program.summary();
  out.erase("planDigest");
  const Json caches = std::move(out["kv"]);
  out.erase("kv");
  for (std::size_t first = 0; first < caches.size();) {
    const auto without_layer = [&](std::size_t i) {
      Json cache = caches[i];
      cache.erase("layer");
      return cache;
    };
    std::size_t end = first + 1;
    while (end < caches.size() && without_layer(end) == without_layer(first)) ++end;
    const Json& from = caches[first]["layer"];
    const Json& to = caches[end - 1]["layer"];
    const std::string layers = from == to ? to_js_json(from) : to_js_json(from) + "-" + to_js_json(to);
    out[(from == to ? "kv of layer " : "kv of layers ") + layers] = without_layer(first);
    first = end;
  }
  return out;
}

void append(std::vector<Change>& out, std::vector<Change> more) {
  std::move(more.begin(), more.end(), std::back_inserter(out));
}

}  // namespace

std::vector<Change> diff_models(const BoundModel& a, const BoundModel& b) {
  std::vector<Change> out =
      plan::diff_json("architecture", a.model.manifest["architecture"], b.model.manifest["architecture"]);
  append(out, diff_tensors(a.model, b.model));
  append(out, plan::diff(a.model.plan, b.model.plan));
  append(out, plan::diff_json("program", program_facts(a.program), program_facts(b.program)));
  return out;
}

}  // namespace candor::runtime
