#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/tensor_file.h"
#include "engine/embedding.h"

namespace candor::cli {
namespace {

struct EmbedArguments {
  PlanArguments plan;
  LoadArguments load;
  std::vector<std::string> texts;
  std::vector<std::string> tokens;
  std::string out;
  bool json = false;
};

int embed(const EmbedArguments& arguments) {
  check_output_files({OutputFile{"--out", arguments.out}}, arguments.plan.model);
  std::vector<std::vector<std::uint32_t>> inputs;
  for (const std::string& list : arguments.tokens) inputs.push_back(token_ids(list));
  std::vector<std::string> texts = arguments.texts;
  if (texts.empty() && inputs.empty()) texts.push_back(read_input());
  Engine engine(arguments.plan.model, engine_options(arguments.plan, arguments.load, !arguments.json));
  for (const std::string& text : texts) inputs.push_back(engine.encode_raw(text));
  std::vector<float> all;
  Json vectors = Json::array();
  Json tokens = Json::array();
  for (const std::vector<std::uint32_t>& input : inputs) {
    const std::vector<float> vector = engine.session().embedding(input);
    all.insert(all.end(), vector.begin(), vector.end());
    vectors.push_back(vector);
    tokens.push_back(input.size());
  }
  const std::uint64_t dimensions = all.size() / inputs.size();
  if (!arguments.out.empty()) write_tensors(arguments.out, {{"embeddings", {inputs.size(), dimensions}, all}}, {});
  if (arguments.json) {
    Json out{{"dimensions", dimensions}, {"tokens", tokens}, {"planDigest", engine.model().compiled().plan_digest}};
    if (arguments.out.empty()) {
      out["embeddings"] = std::move(vectors);
    } else {
      out["file"] = arguments.out;
    }
    print_json(out);
  } else if (arguments.out.empty()) {
    for (const Json& vector : vectors) print(vector.dump() + "\n");
  }
  return 0;
}

}  // namespace

void add_embed(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand("embed", "Print the vector of each text, one JSON array a line");
  auto arguments = std::make_shared<EmbedArguments>();
  add_plan_options(app, arguments->plan);
  CLI::Option* texts = app.add_option("TEXT", arguments->texts, "Texts; standard input if there is none");
  add_repeated(app, "--tokens", arguments->tokens,
               "Token ids, as 1,2,3, of one text, complete with [CLS] and the like; repeatable, needs no tokenizer")
      ->type_name("IDS")
      ->excludes(texts);
  app.add_option("--out", arguments->out, "A safetensors file instead: its tensor `embeddings` is [texts, dimensions]")
      ->type_name("FILE");
  arguments->load.prefill_chunk = kTextTokens;
  add_load_options(app, arguments->load);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), embed);
}

}  // namespace candor::cli
