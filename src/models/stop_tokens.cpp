#include "models/stop_tokens.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace candor::models {
namespace {

class Collector {
 public:
  Collector(const ModelSource& source, std::uint64_t vocabulary) : source_(source), vocabulary_(vocabulary) {}

  void add(double id, std::string_view from) {
    if (!(id >= 0) || id != std::floor(id) || id >= static_cast<double>(vocabulary_))
      fail(ErrorCode::format, "{}: {} is {}, outside the vocabulary of {}", source_.path().string(), from, id,
           vocabulary_);
    const auto token = static_cast<std::uint32_t>(id);
    if (std::find(tokens_.begin(), tokens_.end(), token) == tokens_.end()) tokens_.push_back(token);
  }

  /// True if the file names any.
  bool add_json(const Json& config, std::string_view from) {
    if (!config.is_object() || !config.contains("eos_token_id") || config["eos_token_id"].is_null()) return false;
    const Json& value = config["eos_token_id"];
    const auto add_one = [&](const Json& id) {
      if (!id.is_number())
        fail(ErrorCode::format, "{}: {} must be a number or a list of numbers", source_.path().string(), from);
      add(id.get<double>(), from);
    };
    if (value.is_array()) {
      for (const Json& id : value) add_one(id);
    } else {
      add_one(value);
    }
    return true;
  }

  std::vector<std::uint32_t> take() { return std::move(tokens_); }

 private:
  const ModelSource& source_;
  std::uint64_t vocabulary_;
  std::vector<std::uint32_t> tokens_;
};

}  // namespace

std::vector<std::uint32_t> stop_tokens(const ModelSource& source, std::uint64_t vocabulary) {
  Collector collector(source, vocabulary);
  if (const GgufMetadata* gguf = source.gguf()) {
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
      if (const auto id = gguf->unsigned_integer(key)) collector.add(static_cast<double>(*id), key);
    return collector.take();
  }
  if (!collector.add_json(source.generation_config(), "generation_config.json: eos_token_id"))
    collector.add_json(source.config(), "config.json: eos_token_id");
  return collector.take();
}

}  // namespace candor::models
