#include <CLI/CLI.hpp>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "engine/engine.h"
#include "models/description.h"

namespace candor::cli {
namespace {

struct InspectArguments {
  PlanArguments plan;
  bool manifest = false;
  bool tensors = false;
  bool json = false;
};

/// A part of a model that may be one this build cannot use; what it can use is shown all the same.
template <typename Value>
struct Part {
  std::optional<Value> value;
  std::string problem;
};

template <typename Make>
auto attempt(const Make& make) -> Part<decltype(make())> {
  try {
    return {make(), {}};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

struct Facts {
  std::string family;
  Json architecture;
  std::vector<std::uint32_t> stop_tokens;
};

Facts facts_of(const ModelSource& source) {
  if (source.format() != SourceFormat::artifact) {
    const models::ModelDescription description = models::describe(source);
    return {description.family, description.architecture, description.stop_tokens};
  }
  const Json& manifest = source.manifest();
  Facts facts;
  if (manifest.contains("inference") && manifest["inference"].is_object())
    facts.family = manifest["inference"].value("presetId", "");
  if (manifest.contains("architecture")) facts.architecture = manifest["architecture"];
  return facts;
}

struct Amount {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

std::map<Encoding, Amount> amounts_by_encoding(const ModelSource& source) {
  std::map<Encoding, Amount> amounts;
  for (const TensorInfo& tensor : source.tensors()) {
    Amount& amount = amounts[tensor.encoding];
    ++amount.tensors;
    amount.bytes += tensor.bytes;
  }
  return amounts;
}

std::uint64_t file_bytes(const ModelSource& source) {
  std::uint64_t sum = 0;
  for (const MappedFile& file : source.files()) sum += file.size();
  return sum;
}

std::string join_members(const Json& object) {
  std::vector<std::string> parts;
  if (object.is_object())
    for (const auto& [key, value] : object.items())
      if (!value.is_structured() && !value.is_null())
        parts.push_back(fmt::format("{} {}", key, value.is_string() ? value.get<std::string>() : to_js_json(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print_fact(std::string_view name, std::string_view text) {
  print(fmt::format("{:<14}{}\n", name, text));
}

using TokenizerPart = Part<std::unique_ptr<Tokenizer>>;

void print_tokenizer(const TokenizerPart& part) {
  if (!part.value) {
    print_fact("tokenizer", "cannot be used: " + part.problem);
  } else if (const Tokenizer* tokenizer = part.value->get()) {
    const Json about = tokenizer->describe();
    print_fact("tokenizer",
               fmt::format("{} of {} tokens, {} added, {}BOS, {}", about["model"].get<std::string>(),
                           tokenizer->vocabulary_size(), to_js_json(about["added_tokens"]),
                           tokenizer->adds_bos() ? "adds " : "adds no ", short_digest(tokenizer->digest())));
  } else {
    print_fact("tokenizer", "none");
  }
}

void print_tensors(const ModelSource& source) {
  Table table({"tensor", "encoding", "shape", ">size", ">file", ">offset"});
  for (const TensorInfo& tensor : source.tensors()) {
    const TensorExtent& first = tensor.extents.front();
    table.add({printable(tensor.name), std::string(to_string(tensor.encoding)), print_shape(tensor.shape),
               format_bytes(tensor.bytes), std::to_string(first.file), std::to_string(first.offset)});
  }
  print("\n");
  table.print();
}

int print_summary(const ModelSource& source, const InspectArguments& arguments) {
  const auto facts = attempt([&] { return facts_of(source); });
  const TokenizerPart tokenizer = attempt([&] { return load_tokenizer(source); });
  const auto chat_template = attempt([&] {
    return source.chat_template() ? std::optional(ChatTemplate(*source.chat_template(), source.chat_template_label()))
                                  : std::nullopt;
  });
  print_fact("model", source.path().string());
  print_fact("format", fmt::format("{}, {}, {}", to_string(source.format()), counted(source.files().size(), "file"),
                                   format_bytes(file_bytes(source))));
  if (facts.value) {
    print_fact("family", facts.value->family);
    print_fact("architecture", join_members(facts.value->architecture));
    if (!facts.value->stop_tokens.empty())
      print_fact("stop tokens", fmt::format("{}", fmt::join(facts.value->stop_tokens, ", ")));
  } else {
    print_fact("family", "cannot be run: " + facts.problem);
  }
  print_tokenizer(tokenizer);
  if (!chat_template.value) {
    print_fact("chat template", "cannot be used: " + chat_template.problem);
  } else {
    print_fact("chat template", *chat_template.value
                                    ? fmt::format("{}, {}", counted((*chat_template.value)->source().size(), "byte"),
                                                  short_digest((*chat_template.value)->digest()))
                                    : "none");
  }
  print("\n");
  Table table({"encoding", ">tensors", ">size"});
  for (const auto& [encoding, amount] : amounts_by_encoding(source))
    table.add({std::string(to_string(encoding)), std::to_string(amount.tensors), format_bytes(amount.bytes)});
  table.print();
  print("\n");
  Table files({"file", ">size"});
  for (const MappedFile& file : source.files()) files.add({file.path().filename().string(), format_bytes(file.size())});
  files.print();
  if (arguments.tensors) print_tensors(source);
  return 0;
}

Json problem_json(const std::string& problem) {
  return {{"error", problem}};
}

Json summary_json(const ModelSource& source, const InspectArguments& arguments) {
  Json out{{"path", source.path().string()}, {"format", to_string(source.format())}};
  if (const auto facts = attempt([&] { return facts_of(source); }); facts.value) {
    out["family"] = facts.value->family;
    out["architecture"] = facts.value->architecture;
    out["stopTokens"] = facts.value->stop_tokens;
  } else {
    out["family"] = problem_json(facts.problem);
  }
  const TokenizerPart tokenizer = attempt([&] { return load_tokenizer(source); });
  if (!tokenizer.value) {
    out["tokenizer"] = problem_json(tokenizer.problem);
  } else {
    out["tokenizer"] = *tokenizer.value ? (*tokenizer.value)->describe() : Json();
  }
  out["chatTemplate"] = source.chat_template() ? Json(*source.chat_template()) : Json();
  if (source.gguf() != nullptr) out["metadata"] = source.gguf()->to_json();
  if (!source.config().is_null()) out["config"] = source.config();
  Json encodings = Json::object();
  for (const auto& [encoding, amount] : amounts_by_encoding(source))
    encodings[std::string(to_string(encoding))] = {{"tensors", amount.tensors}, {"bytes", amount.bytes}};
  out["encodings"] = std::move(encodings);
  Json files = Json::array();
  for (const MappedFile& file : source.files())
    files.push_back({{"name", file.path().filename().string()}, {"bytes", file.size()}});
  out["files"] = std::move(files);
  if (!arguments.tensors) return out;
  Json tensors = Json::array();
  for (const TensorInfo& tensor : source.tensors()) {
    Json extents = Json::array();
    for (const TensorExtent& extent : tensor.extents)
      extents.push_back({{"file", extent.file}, {"offset", extent.offset}, {"size", extent.size}});
    tensors.push_back({{"name", tensor.name},
                       {"encoding", to_string(tensor.encoding)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes},
                       {"extents", std::move(extents)}});
  }
  out["tensors"] = std::move(tensors);
  return out;
}

int inspect(const InspectArguments& arguments) {
  const ModelSource source = runtime::open_model(arguments.plan.model, kernels::builtin_registry());
  if (arguments.manifest) {
    print_json(runtime::manifest_of(source, plan_options(arguments.plan)));
    return 0;
  }
  if (!arguments.json) return print_summary(source, arguments);
  print_json(summary_json(source, arguments));
  return 0;
}

}  // namespace

void add_inspect(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("inspect", "What a model's files hold");
  auto arguments = std::make_shared<InspectArguments>();
  (void)add_model(app, arguments->plan.model, "A GGUF file, a Hugging Face folder, an artifact folder, or a name");
  CLI::Option* manifest =
      app.add_flag("--manifest", arguments->manifest, "The manifest, an artifact's own or the one made for it");
  app.add_option("--kernel-path", arguments->plan.kernel_path, "With --manifest: rules that choose the kernels")
      ->type_name("ID|FILE")
      ->needs(manifest);
  app.add_flag("--tensors", arguments->tensors, "Every tensor, and where it lies")->excludes(manifest);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), inspect);
}

}  // namespace candor::cli
