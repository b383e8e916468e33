#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "engine/embedding.h"

namespace candor::cli {
namespace {

struct RerankArguments {
  PlanArguments plan;
  LoadArguments load;
  std::string query;
  std::vector<std::string> documents;
  bool json = false;
};

std::vector<std::string> input_lines() {
  std::vector<std::string> lines;
  const std::string text = read_input();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

int rerank(const RerankArguments& arguments) {
  const std::vector<std::string> documents = arguments.documents.empty() ? input_lines() : arguments.documents;
  if (documents.empty()) fail(ErrorCode::usage, "there are no documents; give some, or a line each on standard input");
  Engine engine(arguments.plan.model, engine_options(arguments.plan, arguments.load, !arguments.json));
  const Ranking ranking = rank_documents(engine, arguments.query, documents);
  if (arguments.json) {
    Json list = Json::array();
    for (const RankedDocument& document : ranking.documents)
      list.push_back({{"index", document.index}, {"score", document.score}, {"document", documents[document.index]}});
    print_json({{"method", to_string(ranking.method)},
                {"documents", list},
                {"planDigest", engine.model().compiled().plan_digest}});
    return 0;
  }
  Table table({">" + std::string(to_string(ranking.method)), "document"});
  for (const RankedDocument& document : ranking.documents)
    table.add({fmt::format("{:.4f}", document.score), printable(documents[document.index], 120)});
  table.print();
  return 0;
}

}  // namespace

void add_rerank(CLI::App& program, Invocation& invocation) {
  CLI::App& app = *program.add_subcommand(
      "rerank", "Order documents by how well they answer a query: by a classifier's score, or by cosine");
  auto arguments = std::make_shared<RerankArguments>();
  add_plan_options(app, arguments->plan);
  app.add_option("QUERY", arguments->query, "The query")->required();
  app.add_option("DOCUMENT", arguments->documents, "Documents; lines of standard input if there is none");
  arguments->load.prefill_chunk = kTextTokens;
  add_load_options(app, arguments->load);
  add_json(app, arguments->json);
  on_chosen(app, invocation, std::move(arguments), rerank);
}

}  // namespace candor::cli
