#include "backends/webgpu/self_test.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <system_error>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "formats/quant/codec.h"
#include "kernels/registry.h"

namespace candor::embedded {
extern const std::string_view webgpu_answers;
}  // namespace candor::embedded

namespace candor::webgpu {
namespace fs = std::filesystem;
namespace {

constexpr std::uint32_t kPagePositions = 16;
constexpr std::uint32_t kPages = 4;

/// Numbers in [-1, 1), multiples of 1/128, that repeat after nothing small.
std::vector<float> numbers(std::uint64_t count, std::uint32_t seed) {
  std::vector<float> out(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto mixed = static_cast<std::uint32_t>((i + 1) * 2654435761u + seed * 40503u);
    out[i] = static_cast<float>((mixed >> 16u) & 0xffu) / 128.0f - 1.0f;
  }
  return out;
}

Encoding encoding_of(const Json& value, const char* key, const char* otherwise) {
  return parse_encoding(value.value(key, std::string(otherwise))).value();
}

/// A case as a Program: inputs are gathered from a table, a row a token.
class CaseProgram {
 public:
  CaseProgram(const SelfTestCase& test, Backend& backend) : backend_(backend), raw_(test.raw) {
    rows_ = raw_.at("rows").get<std::uint32_t>();
    runs_ = raw_.value("runs", 1u);
    program_.backend = "webgpu";
    program_.limits = {.rows = rows_,
                       .sequences = rows_,
                       .context = kPagePositions * kPages,
                       .page_positions = kPagePositions,
                       .pages = kPages};
    Instruction step = instruction(test.operation, test.kernel, test.entry);
    std::uint32_t seed = 1;
    for (const Json& cols : raw_.value("inputs", Json::array()))
      step.operands.push_back({false, ExternalInput::tokens, input(cols.get<std::uint32_t>(), seed++)});
    if (raw_.contains("chosen")) step.operands.push_back({false, ExternalInput::tokens, choices()});
    if (raw_.contains("external"))
      step.operands.push_back({true, static_cast<ExternalInput>(raw_["external"].get<int>()), 0});
    for (const Json& constant : raw_.value("constants", Json::array())) {
      for (const Json& number : constant) step.constants.values.push_back(number.get<double>());
      step.constants.begin.push_back(static_cast<std::uint32_t>(step.constants.values.size()));
    }
    for (const Json& weight : raw_.value("weights", Json::array()))
      step.weights.push_back(
          add_weight(step, encoding_of(weight, "encoding", "f32"), weight.at("rows"), weight.at("cols"), seed++));
    if (raw_.contains("kv")) {
      const Encoding encoding = encoding_of(raw_, "kv", "f32");
      program_.kv.push_back({0, 1, 1, 0, encoding, 0});
      program_.kv[0].page_bytes = backend_.kv_page_bytes(step, kPagePositions, encoding);
      step.kv = 0;
    }
    const bool tokens = raw_.value("tokens", false);
    result_ = value(raw_.at("cols"), tokens ? Encoding::u32 : Encoding::f32,
                    raw_.value("perSequence", false) ? kernels::RowKind::sequences : kernels::RowKind::tokens);
    step.result = result_;
    program_.phases[0].instructions.push_back(std::move(step));
  }

  std::vector<double> run() {
    std::size_t next = 0;
    backend_.load(
        program_, [&](const ProgramWeight&) { return std::span<const std::byte>(stored_[next++]); },
        [](std::uint64_t) {});
    std::vector<std::uint32_t> pages(kPages), tokens(rows_), positions(rows_);
    std::iota(pages.rbegin(), pages.rend(), 0u);
    const bool apart = raw_.value("apart", false);  // each row a sequence
    for (std::uint32_t run = 0; run < runs_; ++run) {
      std::vector<Segment> segments;
      for (std::uint32_t r = 0; r < rows_; ++r) {
        tokens[r] = run * rows_ + r;
        positions[r] = apart ? run : run * rows_ + r;
        if (apart) segments.push_back({r, 1, run, pages.data()});
      }
      if (!apart) segments.push_back({0, rows_, run * rows_, pages.data()});
      backend_.run(Phase::prefill, {tokens, positions, segments}, nullptr);
    }
    return read();
  }

 private:
  std::vector<double> read() const {
    const ProgramValue& entry = program_.phases[0].values[result_];
    const std::size_t count = std::size_t{backend_.value_rows(Phase::prefill, result_)} * entry.cols;
    if (entry.encoding == Encoding::u32) {
      std::vector<std::uint32_t> values(count);
      backend_.read_value(Phase::prefill, result_, std::as_writable_bytes(std::span(values)));
      return {values.begin(), values.end()};
    }
    std::vector<float> values(count);
    backend_.read_value(Phase::prefill, result_, std::as_writable_bytes(std::span(values)));
    return {values.begin(), values.end()};
  }

  static Instruction instruction(const std::string& operation, const std::string& kernel, const std::string& entry) {
    Instruction out;
    out.step = "self-test of " + entry;
    out.operation = operation;
    out.kernel = kernel;
    out.entry = entry;
    out.constants.begin.push_back(0);
    return out;
  }

  std::uint32_t value(std::uint32_t cols, Encoding encoding, kernels::RowKind rows) {
    ProgramValue out;
    out.slot = "value";
    out.encoding = encoding;
    out.rows = rows;
    out.cols = cols;
    out.row_bytes = checked_align(encoded_bytes(encoding, cols, out.slot), 64, out.slot);
    out.buffer = static_cast<std::uint32_t>(program_.slot_buffers.size());
    program_.slot_buffers.push_back(out.row_bytes * rows_);
    program_.phases[0].values.push_back(std::move(out));
    return static_cast<std::uint32_t>(program_.phases[0].values.size() - 1);
  }

  std::uint32_t input(std::uint32_t cols, std::uint32_t seed) {
    Instruction gather = instruction("gather", "webgpu/weights.wgsl", "gather");
    gather.operands.push_back({true, ExternalInput::tokens, 0});
    gather.constants = {{1.0}, {0, 1}};
    gather.weights.push_back(add_weight(gather, Encoding::f32, std::uint64_t{rows_} * runs_, cols, seed));
    gather.result = value(cols, Encoding::f32, kernels::RowKind::tokens);
    program_.phases[0].instructions.push_back(gather);
    return gather.result;
  }

  /// Two columns of each row of the first input, as indices.
  std::uint32_t choices() {
    Instruction top = instruction("top_k", "webgpu/routing.wgsl", "top_k");
    top.operands.push_back({false, ExternalInput::tokens, input(raw_["chosen"], 99)});
    top.constants = {{2.0}, {0, 1}};
    top.result = value(2, Encoding::u32, kernels::RowKind::tokens);
    program_.phases[0].instructions.push_back(top);
    return top.result;
  }

  std::uint32_t add_weight(const Instruction& user, Encoding encoding, std::uint64_t rows, std::uint64_t cols,
                           std::uint32_t seed) {
    ProgramWeight entry;
    entry.tensor = "weight";
    entry.encoding = encoding;
    entry.rows = rows;
    entry.cols = cols;
    const WeightLayout layout = backend_.weight_layout(user, encoding, rows, cols);
    entry.layout = layout.name;
    entry.bytes = layout.bytes;
    program_.weights.push_back(std::move(entry));
    std::vector<std::byte>& bytes = stored_.emplace_back(padded_row_bytes(encoding, cols) * rows);
    quantize(encoding, numbers(rows * cols, seed).data(), bytes.data(), rows, cols);
    return static_cast<std::uint32_t>(program_.weights.size() - 1);
  }

  Backend& backend_;
  const Json& raw_;
  std::uint32_t rows_ = 1, runs_ = 1, result_ = 0;
  Program program_;
  std::vector<std::vector<std::byte>> stored_;
};

std::string library_build(const fs::path& library) {
  std::error_code error;
  const auto size = fs::file_size(library, error);
  const auto changed = fs::last_write_time(library, error);
  return fmt::format("{} {}", size, changed.time_since_epoch().count());
}

/// The encodings that an instruction's kernel reads.
std::set<std::string> encodings_of(const Instruction& instruction, const Program& program) {
  std::set<std::string> out;
  for (const std::uint32_t weight : instruction.weights) out.emplace(to_string(program.weights[weight].encoding));
  if (instruction.kv >= 0) out.emplace(to_string(program.kv[static_cast<std::size_t>(instruction.kv)].encoding));
  return out;
}

}  // namespace

std::string SelfTestCase::name() const {
  return fmt::format("{}#{}{}", kernel, entry,
                     encodings.empty() ? std::string() : fmt::format(" with {}", fmt::join(encodings, ", ")));
}

const std::vector<SelfTestCase>& self_test_cases() {
  static const std::vector<SelfTestCase> cases = [] {
    std::vector<SelfTestCase> out;
    for (const Json& raw : parse_json(embedded::webgpu_answers, "webgpu/answers.json")) {
      SelfTestCase test{raw.at("kernel"), raw.at("entry"), raw.at("operation"), {}, raw};
      for (const Json& weight : raw.value("weights", Json::array())) test.encodings.insert(weight.at("encoding"));
      if (raw.contains("kv")) test.encodings.insert(raw.at("kv"));
      out.push_back(std::move(test));
    }
    return out;
  }();
  return cases;
}

std::vector<double> run_case(const SelfTestCase& test, Backend& backend) {
  return CaseProgram(test, backend).run();
}

std::string difference(const SelfTestCase& test, const std::vector<double>& got) {
  const auto wanted = test.raw.at("answers").get<std::vector<double>>();
  if (wanted.size() != got.size()) return fmt::format("{} values in place of {}", got.size(), wanted.size());
  double squares = 0;
  for (const double x : wanted) squares += x * x;
  const double scale = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(wanted.size(), 1)));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!(std::abs(got[i] - wanted[i]) <= test.raw.value("tolerance", 2e-5) * scale))
      return fmt::format("value {} is {:.6g}, not {:.6g}", i, got[i], wanted[i]);
  return {};
}

fs::path SelfTestCache::file() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return fs::path(cache) / "candor/webgpu-self-test.json";
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache/candor/webgpu-self-test.json";
  return {};
}

SelfTestCache::SelfTestCache(const Adapter& adapter, const fs::path& library)
    : device_(adapter.describe().dump() + " " + library_build(library)) {
  std::error_code error;
  if (file().empty() || !fs::exists(file(), error)) return;
  try {
    const Json cached = parse_json(read_file(file(), limits::json_bytes), file().string());
    for (const Json& entry : cached.at("passed"))
      if (entry.is_string()) passed_.insert(entry.get<std::string>());
  } catch (const std::exception&) {
    passed_.clear();
  }
}

std::string SelfTestCache::key(const SelfTestCase& test) const {
  const auto digest = kernels::builtin_registry().digest(test.kernel, test.entry);
  return Sha256().update(device_).update(digest.value_or("")).update(test.raw.dump()).hex();
}

void SelfTestCache::save() const {
  if (file().empty()) return;
  try {
    fs::create_directories(file().parent_path());
    write_file_atomically(file(), Json{{"passed", passed_}}.dump(1) + "\n");
  } catch (const std::exception&) {
    return;
  }
}

void self_test(const Program& program, const Adapter& adapter, const WebGpuOptions& options) {
  std::set<std::pair<std::string, std::set<std::string>>> used;
  for (const ProgramPhase& phase : program.phases)
    for (const Instruction& instruction : phase.instructions)
      used.emplace(instruction.kernel + "#" + instruction.entry, encodings_of(instruction, program));
  SelfTestCache cache(adapter, adapter.library()->path());
  std::unique_ptr<Backend> backend;
  for (const SelfTestCase& test : self_test_cases()) {
    if (!used.contains({test.kernel + "#" + test.entry, test.encodings}) || cache.passed(test)) continue;
    if (!backend) backend = make_webgpu_backend({options.library, options.adapter, false});
    if (const std::string wrong = difference(test, run_case(test, *backend)); !wrong.empty())
      fail(ErrorCode::device,
           "kernel {} computes wrong answers on adapter \"{}\" ({}): {}; update the driver, or name another --adapter "
           "or "
           "--kernel-path",
           test.name(), printable(adapter.name()), printable(adapter.describe().value("driver", "")), wrong);
    cache.add(test);
  }
  if (backend) cache.save();
}

}  // namespace candor::webgpu
