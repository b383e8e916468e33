// A receipt: what was run, on what, and what came of it, so that the run can be done again and compared. It holds
// digests of the plan, the manifest, the kernels, the weights, the tokenizer and the template; the token ids that went
// in; everything that shapes the answer; and the answer. Written sealed with its own digest, read back as untrusted
// input. Goals: replay needs the receipt and the model, nothing else. Not a goal: timings, or the text of the prompt;
// the ids are what was computed. docs/formats/receipt.md describes the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kernels/batch.h"
#include "plan/diff.h"
#include "runtime/compiled_model.h"

namespace candor::runtime {

inline constexpr std::string_view kReceiptSchema = "candor.receipt/v1";

enum class ReceiptCommand : std::uint8_t { run, logits };

[[nodiscard]] std::string_view to_string(ReceiptCommand command);

struct ReceiptFile {
  std::uint64_t bytes = 0;
  std::string digest;  ///< "sha256:…"; of an original artifact's shard perhaps "blake3:…"
};

/// Digests of all that decides what a plan computes. Two models with the same facts compute the same.
struct ModelFacts {
  std::string id;
  std::string plan;
  std::string manifest;
  std::map<std::string, std::string> kernels;  ///< "file#entry" to digest
  std::map<std::string, ReceiptFile> weights;  ///< by file name
  std::string tokenizer;                       ///< empty: the model has none
  std::string chat_template;                   ///< empty: the model has none

  [[nodiscard]] Json to_json() const;
};

struct Receipt {
  std::string program;  ///< version of the program that ran
  ReceiptCommand command = ReceiptCommand::run;
  std::string model_path;
  ModelFacts model;
  PlanOptions plan;  ///< as they were given; without `manifest`, which is the model's

  Json backend;               ///< device, instruction set, threads
  Json verification;          ///< what of the weights had been hashed before the run
  std::uint32_t context = 0;  ///< positions that there were, where `plan.context` is what was asked for

  std::vector<std::uint32_t> prompt;
  std::uint32_t max_tokens = 0;  ///< 0: no limit; of ReceiptCommand::run, as are the next three
  std::vector<std::string> stop_strings;
  bool ignore_stop_tokens = false;
  SamplerParameters sampler;

  std::vector<std::uint32_t> tokens;  ///< the answer of ReceiptCommand::run
  std::string stop_reason, stop_text;
  std::vector<std::uint64_t> shape;  ///< the answer of ReceiptCommand::logits: [tokens, vocabulary],
  std::string logits;                ///< and the digest of their float32 bytes

  /// The document, with `receiptDigest` last.
  [[nodiscard]] Json to_json() const;
};

/// Throws Error(format) naming the field, its value and what it must be; Error(integrity) if the document is not what
/// its own digest says. `label` (the path) starts every message.
[[nodiscard]] Receipt parse_receipt(std::string_view text, std::string_view label);

/// True for a document that says it is a receipt, of whatever version.
[[nodiscard]] bool is_receipt(const Json& document);

/// Which digests differ, as changes of "model".
[[nodiscard]] std::vector<plan::Change> diff_facts(const ModelFacts& a, const ModelFacts& b);

}  // namespace candor::runtime
