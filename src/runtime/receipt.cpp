#include "runtime/receipt.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/js_value.h"
#include "base/limits.h"

namespace candor::runtime {
namespace {

constexpr std::string_view kDigestField = "receiptDigest";
constexpr std::string_view kSchemaFamily = "candor.receipt/";
constexpr std::size_t kMostStops = 1024;
constexpr double kLargestSeed = 9007199254740991;  // 2^53 - 1: JSON's numbers are doubles

std::string_view rows_name(RowSelection rows) {
  return rows == RowSelection::all ? "all" : "last";
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

std::string digest_without_seal(Json receipt) {
  receipt.erase(std::string(kDigestField));
  return canonical_digest(receipt);
}

/// A place in a receipt. Every reading checks type and range, and names the place where that fails.
class Field {
 public:
  Field(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[nodiscard]] Field at(const char* key) const {
    if (!value_->is_object()) refuse("an object");
    const js::Value member = js::get(value_, key);
    if (member == nullptr) fail(ErrorCode::format, "{}.{} is missing", path_, key);
    return {*member, fmt::format("{}.{}", path_, key)};
  }

  [[nodiscard]] std::string text() const {
    if (!value_->is_string()) refuse("a string");
    const auto& text = value_->get_ref<const std::string&>();
    if (text.size() > limits::name_bytes)
      fail(ErrorCode::format, "{} has {} bytes, more than {}", path_, text.size(), limits::name_bytes);
    return text;
  }
  [[nodiscard]] std::string text_or_empty() const { return value_->is_null() ? std::string() : text(); }

  [[nodiscard]] std::string digest() const {
    std::string out = text();
    const auto colon = out.find(':');
    const std::string_view kind = std::string_view(out).substr(0, colon);
    if ((kind != "sha256" && kind != "blake3") || out.size() != kind.size() + 65 ||
        out.find_first_not_of("0123456789abcdef", colon + 1) != std::string::npos)
      refuse("\"sha256:\" and 64 lower-case hexadecimal digits");
    return out;
  }
  [[nodiscard]] std::string digest_or_empty() const { return value_->is_null() ? std::string() : digest(); }

  [[nodiscard]] std::uint64_t whole(double most) const {
    const double number = value_->is_number() ? value_->get<double>() : -1;
    if (!(number >= 0 && number <= most) || number != std::floor(number))
      refuse(fmt::format("a whole number from 0 to {}", js_number(most)));
    return static_cast<std::uint64_t>(number);
  }
  [[nodiscard]] std::uint32_t whole32(std::uint64_t most = std::numeric_limits<std::uint32_t>::max()) const {
    return static_cast<std::uint32_t>(whole(static_cast<double>(most)));
  }

  [[nodiscard]] float real(float low, float high) const {
    const double number = value_->is_number() ? value_->get<double>() : std::nan("");
    if (!(number >= double{low} && number <= double{high})) refuse(fmt::format("a number from {} to {}", low, high));
    return static_cast<float>(number);
  }

  [[nodiscard]] bool boolean() const {
    if (!value_->is_boolean()) refuse("true or false");
    return value_->get<bool>();
  }

  [[nodiscard]] Json object_or_null() const {
    if (!value_->is_null() && !value_->is_object()) refuse("an object or null");
    return *value_;
  }

  [[nodiscard]] std::vector<Field> list(std::uint64_t most) const {
    if (!value_->is_array()) refuse("a list");
    check_count(value_->size(), most);
    std::vector<Field> out;
    out.reserve(value_->size());
    for (std::size_t i = 0; i < value_->size(); ++i) out.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
    return out;
  }

  [[nodiscard]] std::vector<std::uint32_t> tokens() const {
    if (!value_->is_array()) refuse("a list of token ids");
    check_count(value_->size(), limits::context);
    std::vector<std::uint32_t> out;
    out.reserve(value_->size());
    for (std::size_t i = 0; i < value_->size(); ++i) {
      const Json& token = (*value_)[i];
      const double id = token.is_number() ? token.get<double>() : -1;
      if (!(id >= 0 && id < static_cast<double>(limits::vocabulary)) || id != std::floor(id))
        fail(ErrorCode::format, "{}[{}] must be a token id; got {}", path_, i, printable(to_js_json(token), 40));
      out.push_back(static_cast<std::uint32_t>(id));
    }
    return out;
  }

  /// The members of an object, by name.
  [[nodiscard]] std::vector<std::pair<std::string, Field>> members(std::uint64_t most) const {
    if (!value_->is_object()) refuse("an object");
    check_count(value_->size(), most);
    std::vector<std::pair<std::string, Field>> out;
    for (const auto& [key, member] : value_->get_ref<const Json::object_t&>())
      out.emplace_back(key, Field(member, fmt::format("{}.{}", path_, printable(key))));
    return out;
  }

  [[noreturn]] void refuse(std::string_view wanted) const {
    fail(ErrorCode::format, "{} must be {}; got {}", path_, wanted, printable(to_js_json(*value_), 60));
  }

 private:
  void check_count(std::size_t count, std::uint64_t most) const {
    if (count > most) fail(ErrorCode::format, "{} has {} entries, more than {}", path_, count, most);
  }

  const Json* value_;
  std::string path_;
};

ModelFacts read_facts(const Field& root) {
  ModelFacts facts;
  facts.id = root.at("id").text();
  facts.plan = root.at("plan").digest();
  facts.manifest = root.at("manifest").digest();
  for (const auto& [kernel, digest] : root.at("kernels").members(limits::steps))
    facts.kernels.emplace(kernel, digest.digest());
  for (const auto& [file, entry] : root.at("weights").members(limits::shards))
    facts.weights.emplace(file, ReceiptFile{entry.at("bytes").whole(0x1p53), entry.at("digest").digest()});
  facts.tokenizer = root.at("tokenizer").digest_or_empty();
  facts.chat_template = root.at("chatTemplate").digest_or_empty();
  return facts;
}

PlanOptions read_plan_options(const Field& root) {
  PlanOptions options;
  options.kernel_path = root.at("kernelPath").text_or_empty();
  options.registry = root.at("registry").text_or_empty();
  options.backend = root.at("backend").text_or_empty();
  options.pooling = root.at("pooling").text_or_empty();
  options.context = root.at("context").whole32(limits::context);
  options.session = root.at("session").object_or_null();
  options.execution_patch = root.at("executionPatch").object_or_null();
  const std::string rows = root.at("rows").text();
  if (rows != "last" && rows != "all") root.at("rows").refuse("last or all");
  options.rows = rows == "all" ? RowSelection::all : RowSelection::last;
  return options;
}

SamplerParameters read_sampler(const Field& root) {
  SamplerParameters sampler;
  sampler.temperature = root.at("temperature").real(0, 100);
  sampler.top_k = root.at("topK").whole32();
  sampler.top_p = root.at("topP").real(0, 1);
  sampler.min_p = root.at("minP").real(0, 1);
  sampler.repetition_penalty = root.at("repetitionPenalty").real(0.01f, 100);
  sampler.repetition_window = root.at("repetitionWindow").whole32();
  sampler.seed = root.at("seed").whole(kLargestSeed);
  return sampler;
}

void read_run(const Field& request, const Field& answer, Receipt& receipt) {
  receipt.max_tokens = request.at("maxTokens").whole32(limits::context);
  for (const Field& stop : request.at("stop").list(kMostStops)) receipt.stop_strings.push_back(stop.text());
  receipt.ignore_stop_tokens = request.at("ignoreStopTokens").boolean();
  receipt.sampler = read_sampler(request.at("sampler"));
  receipt.tokens = answer.at("tokens").tokens();
  receipt.stop_reason = answer.at("stop").at("reason").text();
  receipt.stop_text = answer.at("stop").at("text").text_or_empty();
}

void read_logits(const Field& answer, Receipt& receipt) {
  for (const Field& size : answer.at("shape").list(2)) receipt.shape.push_back(size.whole(0x1p53));
  if (receipt.shape.size() != 2) answer.at("shape").refuse("[tokens, vocabulary]");
  receipt.logits = answer.at("digest").digest();
}

Json sampler_json(const SamplerParameters& sampler) {
  return {{"temperature", sampler.temperature},
          {"topK", sampler.top_k},
          {"topP", sampler.top_p},
          {"minP", sampler.min_p},
          {"repetitionPenalty", sampler.repetition_penalty},
          {"repetitionWindow", sampler.repetition_window},
          {"seed", sampler.seed}};
}

void check_seal(const Json& document, std::string_view label) {
  const js::Value schema = js::get(&document, "schema");
  if (!is_receipt(document))
    fail(ErrorCode::format, "{}: no receipt: schema must be \"{}\"; got {}", label, kReceiptSchema,
         printable(js::to_string(schema)));
  if (!js::strict_equal(schema, kReceiptSchema))
    fail(ErrorCode::unsupported, "{}: a receipt of schema \"{}\"; this build reads \"{}\"", label,
         printable(js::to_string(schema)), kReceiptSchema);
  const js::Value stated = js::get(&document, kDigestField);
  if (stated == nullptr) fail(ErrorCode::integrity, "{}: {} is missing; the receipt was changed", label, kDigestField);
  const std::string found = digest_without_seal(document);
  if (!js::strict_equal(stated, found))
    fail(ErrorCode::integrity,
         "{}: the receipt's digest is {}, but {} says {}; it was changed after it was written, so it proves nothing",
         label, found, kDigestField, printable(js::to_string(stated)));
}

}  // namespace

std::string_view to_string(ReceiptCommand command) {
  return command == ReceiptCommand::run ? "run" : "logits";
}

Json ModelFacts::to_json() const {
  Json files = Json::object();
  for (const auto& [name, file] : weights) files[name] = {{"bytes", file.bytes}, {"digest", file.digest}};
  Json pins = Json::object();
  for (const auto& [kernel, digest] : kernels) pins[kernel] = digest;
  return {{"id", id},
          {"plan", plan},
          {"manifest", manifest},
          {"kernels", std::move(pins)},
          {"weights", std::move(files)},
          {"tokenizer", text_or_null(tokenizer)},
          {"chatTemplate", text_or_null(chat_template)}};
}

Json Receipt::to_json() const {
  Json request{{"prompt", prompt}};
  Json answer;
  if (command == ReceiptCommand::run) {
    request["maxTokens"] = max_tokens;
    request["stop"] = stop_strings;
    request["ignoreStopTokens"] = ignore_stop_tokens;
    request["sampler"] = sampler_json(sampler);
    answer = {{"tokens", tokens}, {"stop", {{"reason", stop_reason}, {"text", stop_text}}}};
  } else {
    answer = {{"shape", shape}, {"digest", logits}};
  }
  Json out{{"schema", kReceiptSchema},
           {"program", program},
           {"command", to_string(command)},
           {"path", model_path},
           {"model", model.to_json()},
           {"plan",
            {{"kernelPath", text_or_null(plan.kernel_path)},
             {"registry", text_or_null(plan.registry)},
             {"backend", text_or_null(plan.backend)},
             {"pooling", text_or_null(plan.pooling)},
             {"context", plan.context},
             {"session", plan.session},
             {"executionPatch", plan.execution_patch},
             {"rows", rows_name(plan.rows)}}},
           {"execution", {{"backend", backend}, {"context", context}, {"verification", verification}}},
           {"request", std::move(request)},
           {"answer", std::move(answer)}};
  out[std::string(kDigestField)] = digest_without_seal(out);
  return out;
}

bool is_receipt(const Json& document) {
  const js::Value schema = js::get(&document, "schema");
  return js::is_string(schema) && schema->get_ref<const std::string&>().starts_with(kSchemaFamily);
}

Receipt parse_receipt(std::string_view text, std::string_view label) {
  const Json document = parse_json(text, label);
  check_seal(document, label);
  const Field root(document, fmt::format("{}: receipt", label));
  Receipt receipt;
  receipt.program = root.at("program").text();
  const std::string command = root.at("command").text();
  if (command != "run" && command != "logits") root.at("command").refuse("run or logits");
  receipt.command = command == "run" ? ReceiptCommand::run : ReceiptCommand::logits;
  receipt.model_path = root.at("path").text();
  receipt.model = read_facts(root.at("model"));
  receipt.plan = read_plan_options(root.at("plan"));
  const Field execution = root.at("execution");
  receipt.backend = execution.at("backend").object_or_null();
  receipt.verification = execution.at("verification").object_or_null();
  receipt.context = execution.at("context").whole32(limits::context);
  const Field request = root.at("request");
  receipt.prompt = request.at("prompt").tokens();
  if (receipt.command == ReceiptCommand::run) {
    read_run(request, root.at("answer"), receipt);
  } else {
    read_logits(root.at("answer"), receipt);
  }
  return receipt;
}

std::vector<plan::Change> diff_facts(const ModelFacts& a, const ModelFacts& b) {
  return plan::diff_json("model", a.to_json(), b.to_json());
}

}  // namespace candor::runtime
