// webgpu_bench [ADAPTER] [SECONDS] [LAYERS]: what the WebGPU kernels reach on a device, beside what the device itself
// can do in the same run: a device copy and what one dependent dispatch costs; products of one row and of 512 over the
// shapes of Llama-type models of 1.1 and 8 billion parameters; decoding and prefill of such models in f16, whole
// Programs with weights that say nothing, beside dispatches × latency + bytes ÷ bandwidth. Times of kernels are the
// difference between a submission of many and one of few, the best of several. Models that do not fit the adapter's
// limits are named and left out, and what SECONDS (150) does not suffice for.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backends/webgpu/backend.h"
#include "base/checked.h"
#include "base/error.h"
#include "kernels/registry.h"

namespace candor::webgpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kWeights = "webgpu/weights.wgsl";
constexpr const char* kAttention = "webgpu/attention.wgsl";
constexpr int kRounds = 5;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Constants of an operation in its order.
kernels::ConstantBlock constants(const std::vector<std::vector<double>>& values) {
  kernels::ConstantBlock out;
  out.begin.push_back(0);
  for (const auto& value : values) {
    out.values.insert(out.values.end(), value.begin(), value.end());
    out.begin.push_back(static_cast<std::uint32_t>(out.values.size()));
  }
  return out;
}

/// A Program made step by step; weights read bytes that say nothing.
class ProgramMaker {
 public:
  ProgramMaker(Backend& backend, const ProgramLimits& limits) : backend_(backend) {
    program_.backend = "webgpu";
    program_.limits = limits;
  }

  Program& program() { return program_; }
  void phase(Phase phase) { phase_ = static_cast<std::size_t>(phase); }

  std::uint32_t value(std::uint32_t cols, kernels::RowKind rows = kernels::RowKind::tokens,
                      Encoding encoding = Encoding::f32) {
    ProgramValue value;
    value.slot = "slot";
    value.cols = cols;
    value.encoding = encoding;
    value.rows = rows;
    value.row_bytes = checked_align(std::uint64_t{cols} * 4, 64, "slot");
    value.buffer = static_cast<std::uint32_t>(program_.slot_buffers.size());
    program_.slot_buffers.push_back(value.row_bytes * program_.limits.rows);
    current().values.push_back(value);
    return static_cast<std::uint32_t>(current().values.size() - 1);
  }

  struct Step {
    const char *operation, *kernel, *entry;
    std::vector<std::uint32_t> operands = {};
    std::vector<std::uint32_t> weights = {};
    std::vector<std::vector<double>> constants = {};
    std::int32_t kv = -1;
    const ExternalInput* external = nullptr;
  };

  void add(const Step& step, std::uint32_t result) {
    Instruction out;
    out.step = out.op = out.operation = step.operation;
    out.kernel = step.kernel;
    out.entry = step.entry;
    for (const std::uint32_t operand : step.operands) out.operands.push_back({false, ExternalInput::tokens, operand});
    if (step.external) out.operands.push_back({true, *step.external, 0});
    out.weights = step.weights;
    out.constants = webgpu::constants(step.constants);
    out.kv = step.kv;
    out.result = result;
    if (step.kv >= 0) {
      ProgramKv& cache = program_.kv[static_cast<std::size_t>(step.kv)];
      cache.page_bytes = backend_.kv_page_bytes(out, program_.limits.page_positions, cache.encoding);
    }
    current().instructions.push_back(std::move(out));
  }

  std::uint32_t weight(Encoding encoding, std::uint64_t rows, std::uint64_t cols) {
    ProgramWeight entry;
    entry.tensor = "weight";
    entry.encoding = encoding;
    entry.rows = rows;
    entry.cols = cols;
    Instruction user;
    user.kernel = kWeights;
    user.entry = "gather";
    const WeightLayout layout = backend_.weight_layout(user, encoding, rows, cols);
    entry.layout = layout.name;
    entry.bytes = layout.bytes;
    program_.weights.push_back(entry);
    return static_cast<std::uint32_t>(program_.weights.size() - 1);
  }

  void load() {
    backend_.load(
        program_,
        [&](const ProgramWeight& weight) {
          const std::uint64_t bytes = encoded_bytes(weight.encoding, weight.cols, "weight") * weight.rows;
          return some_bytes(bytes);
        },
        [](std::uint64_t) {});
  }

 private:
  ProgramPhase& current() { return program_.phases[phase_]; }

  /// Small numbers in f16, and harmless ones in every other encoding: a pattern repeated.
  static std::span<const std::byte> some_bytes(std::uint64_t size) {
    static std::vector<std::byte> bytes;
    static std::mt19937 random(1);
    constexpr std::size_t kPattern = 1u << 20;
    for (std::size_t i = bytes.size(); i < kPattern; ++i)
      bytes.push_back(static_cast<std::byte>(i % 2 == 1 ? 0x18u | (random() & 0x83u) : random() & 0xffu));
    for (std::size_t had = bytes.size(); had < size; had += kPattern) {
      bytes.resize(had + kPattern);
      std::copy_n(bytes.begin(), kPattern, bytes.begin() + static_cast<std::ptrdiff_t>(had));
    }
    return std::span(bytes).first(size);
  }

  Backend& backend_;
  Program program_;
  std::size_t phase_ = 0;
};

/// Seconds of one of the steps that `add` puts into a Program, from Programs of few and of many.
template <typename Add>
double step_seconds(Backend& backend, std::uint32_t rows, std::uint32_t cols, int few, int many, const Add& add) {
  double best[2] = {1e30, 1e30};
  for (const int which : {0, 1}) {
    ProgramMaker maker(backend, {.rows = rows, .sequences = 1, .context = 64, .page_positions = 64, .pages = 1});
    static constexpr ExternalInput kTokens = ExternalInput::tokens;
    const std::uint32_t src = maker.value(cols);
    maker.add({.operation = "gather",
               .kernel = kWeights,
               .entry = "gather",
               .weights = {maker.weight(Encoding::f32, 1, cols)},
               .constants = {{1.0}},
               .external = &kTokens},
              src);
    add(maker, src, which == 0 ? few : many);
    maker.load();
    const std::vector<std::uint32_t> tokens(rows);
    std::vector<std::uint32_t> positions(rows);
    for (std::uint32_t r = 0; r < rows; ++r) positions[r] = r % 64;
    const std::uint32_t page = 0;
    const Segment segment{.rows = rows, .kv_pages = &page};
    std::vector<float> out(std::size_t{rows} * cols);
    for (int round = 0; round <= kRounds; ++round) {
      const auto start = Clock::now();
      backend.run(Phase::prefill, {tokens, positions, {&segment, 1}}, nullptr);
      backend.read_value(Phase::prefill, src, std::as_writable_bytes(std::span(out)));
      if (round > 0) best[which] = std::min(best[which], since(start));
    }
  }
  return (best[1] - best[0]) / (many - few);
}

double dispatch_seconds(Backend& backend) {
  return step_seconds(backend, 1, 4096, 100, 600, [](ProgramMaker& maker, std::uint32_t src, int count) {
    // Each reads what the one before wrote.
    std::uint32_t last = src;
    const std::uint32_t spare[] = {maker.value(4096), maker.value(4096)};
    for (int i = 0; i < count; ++i) {
      maker.add({.operation = "residual_add",
                 .kernel = "webgpu/elements.wgsl",
                 .entry = "residual_add",
                 .operands = {last, src}},
                spare[i % 2]);
      last = spare[i % 2];
    }
  });
}

double product_seconds(Backend& backend, const char* entry, Encoding encoding, std::uint32_t m, std::uint32_t k,
                       std::uint32_t n, int few, int many) {
  return step_seconds(backend, m, k, few, many, [&](ProgramMaker& maker, std::uint32_t src, int count) {
    // Several matrices in turn, more than any cache holds.
    const std::uint64_t bytes = encoded_bytes(encoding, k, "weight") * n;
    std::vector<std::uint32_t> weights;
    for (std::uint64_t held = 0; held < (256u << 20) && weights.size() < 32; held += bytes)
      weights.push_back(maker.weight(encoding, n, k));
    const std::uint32_t dst = maker.value(n);
    for (int i = 0; i < count; ++i)
      maker.add({.operation = "matmul",
                 .kernel = kWeights,
                 .entry = entry,
                 .operands = {src},
                 .weights = {weights[static_cast<std::size_t>(i) % weights.size()]}},
                dst);
  });
}

struct Shape {
  const char* name;
  std::uint32_t layers, width, heads, kv_heads, head_dim, hidden, vocabulary;
};

constexpr Shape kSmall{"1.1 B", 22, 2048, 32, 4, 64, 5632, 32000};
constexpr Shape kLarge{"8 B", 32, 4096, 32, 8, 128, 14336, 128256};
constexpr std::uint32_t kPrompt = 512, kContext = 1024, kAhead = 32;

/// A Llama of this shape in f16 with the steps of the kernel path webgpu-fused.
Program llama(ProgramMaker& maker, const Shape& s) {
  static constexpr ExternalInput kTokens = ExternalInput::tokens, kPositions = ExternalInput::positions,
                                 kSampler = ExternalInput::sampler;
  const std::uint32_t q_cols = s.heads * s.head_dim, kv_cols = s.kv_heads * s.head_dim;
  struct Layer {
    std::uint32_t norm, q, k, v, o, other_norm, gate, up, down;
  };
  const auto f16 = [&](std::uint32_t rows, std::uint32_t cols) { return maker.weight(Encoding::f16, rows, cols); };
  const std::uint32_t table = f16(s.vocabulary, s.width), head = f16(s.vocabulary, s.width),
                      last_norm = f16(1, s.width);
  std::vector<Layer> layers;
  for (std::uint32_t l = 0; l < s.layers; ++l) {
    layers.push_back({f16(1, s.width), f16(q_cols, s.width), f16(kv_cols, s.width), f16(kv_cols, s.width),
                      f16(s.width, q_cols), f16(1, s.width), f16(s.hidden, s.width), f16(s.hidden, s.width),
                      f16(s.width, s.hidden)});
    maker.program().kv.push_back({static_cast<std::int32_t>(l), s.kv_heads, s.head_dim, 0, Encoding::f16, 0});
  }
  std::vector<double> frequencies;
  for (std::uint32_t i = 0; i < s.head_dim / 2; ++i) frequencies.push_back(std::pow(10000.0, -2.0 * i / s.head_dim));
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const bool prefill = phase == Phase::prefill;
    maker.phase(phase);
    std::uint32_t state = maker.value(s.width), spare = maker.value(s.width);
    const std::uint32_t normed = maker.value(s.width), packed = maker.value(q_cols + 2 * kv_cols),
                        attended = maker.value(q_cols), gated = maker.value(s.hidden);
    maker.add({.operation = "gather",
               .kernel = kWeights,
               .entry = "gather",
               .weights = {table},
               .constants = {{1.0}},
               .external = &kTokens},
              state);
    const auto norm = [&](std::uint32_t from, std::uint32_t weight, std::uint32_t to) {
      maker.add({.operation = "rmsnorm",
                 .kernel = "webgpu/rows.wgsl",
                 .entry = "rmsnorm",
                 .operands = {from},
                 .weights = {weight},
                 .constants = {{1e-5}, {double(s.width)}, {0.0}}},
                to);
    };
    const auto product = [&](const char* operation, const char* entry, std::vector<std::uint32_t> operands,
                             std::vector<std::uint32_t> weights, std::uint32_t to) {
      ProgramMaker::Step step{.operation = operation, .kernel = kWeights, .entry = entry};
      step.operands = std::move(operands);
      step.weights = std::move(weights);
      if (std::string(operation) == "gated_matmul") step.constants = {{0}};
      maker.add(step, to);
    };
    for (std::uint32_t l = 0; l < s.layers; ++l) {
      const Layer& w = layers[l];
      norm(state, w.norm, normed);
      product("qkv_matmul", prefill ? "qkv_tiled" : "qkv_gemv", {normed}, {w.q, w.k, w.v}, packed);
      maker.add({.operation = "rope_attention",
                 .kernel = kAttention,
                 .entry = prefill ? "rope_prefill" : "rope_decode",
                 .operands = {packed},
                 .constants = {{double(s.head_dim)},
                               {0},
                               frequencies,
                               {1},
                               {double(s.heads)},
                               {double(s.kv_heads)},
                               {1 / std::sqrt(double(s.head_dim))},
                               {0},
                               {0},
                               {1}},
                 .kv = static_cast<std::int32_t>(l),
                 .external = &kPositions},
                attended);
      product("matmul_residual", prefill ? "residual_tiled" : "residual_gemv", {attended, state}, {w.o}, spare);
      std::swap(state, spare);
      norm(state, w.other_norm, normed);
      product("gated_matmul", prefill ? "gated_tiled" : "gated_gemv", {normed}, {w.gate, w.up}, gated);
      product("matmul_residual", prefill ? "residual_tiled" : "residual_gemv", {gated, state}, {w.down}, spare);
      std::swap(state, spare);
    }
    std::uint32_t row = state;
    if (prefill) {
      row = maker.value(s.width, kernels::RowKind::sequences);
      maker.add({.operation = "row_slice",
                 .kernel = "webgpu/elements.wgsl",
                 .entry = "row_slice",
                 .operands = {state},
                 .constants = {{0}}},
                row);
    }
    const auto kind = prefill ? kernels::RowKind::sequences : kernels::RowKind::tokens;
    const std::uint32_t last = maker.value(s.width, kind), logits = maker.value(s.vocabulary, kind),
                        token = maker.value(1, kernels::RowKind::sequences, Encoding::u32);
    norm(row, last_norm, last);
    product("matmul", "gemv", {last}, {head}, logits);
    maker.add({.operation = "sample",
               .kernel = "webgpu/sample.wgsl",
               .entry = "sample",
               .operands = {logits},
               .external = &kSampler},
              token);
  }
  maker.program().decode_loop.batch_size = kAhead;
  return maker.program();
}

/// Bytes that a decoded token reads: all matrices but the table, and the cache at `depth`.
double bytes_a_token(const Program& program, std::uint32_t depth) {
  double bytes = 0;
  for (const Instruction& instruction : program.phase(Phase::decode).instructions) {
    for (const std::uint32_t weight : instruction.weights)
      bytes += static_cast<double>(program.weights[weight].bytes) /
               (instruction.operation == "gather" ? static_cast<double>(program.weights[weight].rows) : 1.0);
    if (instruction.kv >= 0)
      bytes += static_cast<double>(program.kv[static_cast<std::size_t>(instruction.kv)].page_bytes) /
               program.limits.page_positions * depth;
  }
  return bytes;
}

double operations_a_token(const Program& program) {
  double operations = 0;
  for (const Instruction& instruction : program.phase(Phase::prefill).instructions)
    if (instruction.operation.find("matmul") != std::string::npos && instruction.operation != "matmul")
      for (const std::uint32_t weight : instruction.weights)
        operations += 2.0 * static_cast<double>(program.weights[weight].rows * program.weights[weight].cols);
  return operations;
}

/// What the steps of a phase take, by operation: how often, and how long together.
void print_steps(Backend& backend, const Program& program, Phase phase, const Batch& batch) {
  std::optional<std::vector<double>> seconds;
  for (int round = 0; round < 3; ++round) {  // the last counts
    seconds = backend.step_seconds(phase, batch);
    if (!seconds) return;
  }
  std::map<std::string, std::pair<int, double>> sums;
  const auto& instructions = program.phase(phase).instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    auto& [count, sum] = sums[instructions[i].operation];
    ++count;
    sum += (*seconds)[i];
  }
  std::printf("        steps of %s:", phase == Phase::prefill ? "prefill" : "decode");
  for (const auto& [operation, sum] : sums)
    std::printf(" %s %d x %.1f us;", operation.c_str(), sum.first, sum.second / sum.first * 1e6);
  std::printf("\n");
}

void measure_model(Backend& backend, const Shape& shape, double latency, double bandwidth, bool brief) {
  const auto started = Clock::now();
  ProgramMaker maker(backend,
                     {.rows = kPrompt, .sequences = 1, .context = kContext, .page_positions = 64, .pages = 16});
  const Program program = llama(maker, shape);
  maker.load();
  const double loading = since(started);

  std::vector<std::uint32_t> pages(program.limits.pages), tokens(kPrompt), positions(kPrompt);
  std::iota(pages.begin(), pages.end(), 0u);
  std::iota(positions.begin(), positions.end(), 0u);
  for (std::uint32_t i = 0; i < kPrompt; ++i) tokens[i] = i * 37 % 1000;
  const SamplerParameters greedy;
  const Segment prompt{.rows = kPrompt, .kv_pages = pages.data(), .sampler = &greedy};
  const std::uint32_t sampled = program.phase(Phase::prefill).instructions.back().result;
  double prefill = 1e30;
  for (int round = 0; round < (brief ? 2 : 4); ++round) {
    const auto start = Clock::now();
    std::uint32_t token = 0;
    backend.run(Phase::prefill, {tokens, positions, {&prompt, 1}}, nullptr);
    backend.read_value(Phase::prefill, sampled, std::as_writable_bytes(std::span(&token, 1)));
    if (round > 0) prefill = std::min(prefill, since(start));
  }
  std::printf(
      "prefill %-6s f16: %6.2f ms for %u tokens, %8.0f tokens/s, %6.2f TFLOP/s in products (loaded in %.1f s)\n",
      shape.name, prefill * 1e3, kPrompt, kPrompt / prefill, operations_a_token(program) * kPrompt / prefill / 1e12,
      loading);

  print_steps(backend, program, Phase::prefill, {tokens, positions, {&prompt, 1}});

  for (const std::uint32_t depth : {0u, kPrompt}) {
    std::vector<std::uint32_t> places(kAhead);
    std::iota(places.begin(), places.end(), depth);
    std::vector<Segment> segments;
    std::vector<Batch> batches;
    for (std::uint32_t i = 0; i < kAhead; ++i)
      segments.push_back({.rows = 1, .first_position = depth + i, .kv_pages = pages.data(), .sampler = &greedy});
    for (std::uint32_t i = 0; i < kAhead; ++i)
      batches.push_back(
          {std::span(tokens).subspan(i, 1), std::span(places).subspan(i, 1), std::span(segments).subspan(i, 1)});
    const std::uint32_t result = program.phase(Phase::decode).instructions.back().result;
    (void)backend.run_chained(batches, result);
    // As a generation does it: the next tokens are submitted before those of the submission before are read.
    const int submissions = brief ? 2 : 6;
    double best = 1e30;
    for (int round = 0; round < (brief ? 1 : 3); ++round) {
      const auto start = Clock::now();
      backend.submit_chained(batches, result, false);
      for (int i = 1; i < submissions; ++i) {
        backend.submit_chained(batches, result, true);
        (void)backend.collect_chained();
      }
      (void)backend.collect_chained();
      best = std::min(best, since(start) / (submissions * static_cast<int>(kAhead)));
    }
    const double bytes = bytes_a_token(program, depth + kAhead / 2);
    const std::size_t steps = program.phase(Phase::decode).instructions.size();
    // Past a chunk of 256 positions attention combines in a second dispatch.
    const std::size_t dispatches = steps + (depth + kAhead > 256 ? shape.layers : 0);
    const double model = static_cast<double>(dispatches) * latency + bytes / bandwidth;
    std::printf(
        "decode  %-6s f16 at %3u: %7.1f tokens/s, %6.3f ms; model %zu dispatches + %.2f GB = %6.3f ms (%+.0f %%); "
        "%3.0f %% of bandwidth\n",
        shape.name, depth, 1 / best, best * 1e3, dispatches, bytes / 1e9, model * 1e3, (best / model - 1) * 100,
        bytes / bandwidth / best * 100);
  }
}

void measure(const std::string& adapter, double seconds, std::uint32_t layers) {
  const auto started = Clock::now();
  const auto backend = make_webgpu_backend({.library = {}, .adapter = adapter, .self_test = false});
  std::printf("%s\n", backend->describe().dump().c_str());
  const double latency = dispatch_seconds(*backend);
  std::printf("dependent dispatch: %.2f us\n", latency * 1e6);
  const double bandwidth = backend->measure_copy().value_or(0);
  std::printf("copy: %.1f GB/s read and written\n", bandwidth / 1e9);
  const auto late = [&] {
    if (since(started) < seconds) return false;
    std::printf("left out for lack of time\n");
    return true;
  };
  const auto attempt = [&](Shape shape) {
    if (layers > 0) shape.layers = layers;
    if (late()) return;
    try {
      measure_model(*backend, shape, latency, bandwidth, layers > 0);
    } catch (const Error& error) {
      std::printf("%s: %s\n", shape.name, error.what());
    }
  };
  attempt(kSmall);
  attempt(kLarge);
  for (const auto& [n, k] : {std::pair{2048u, 2048u},
                             {2560u, 2048u},
                             {5632u, 2048u},
                             {2048u, 5632u},
                             {4096u, 4096u},
                             {14336u, 4096u},
                             {4096u, 14336u}}) {
    if (late()) return;
    const double time = product_seconds(*backend, "tiled", Encoding::f16, 512, k, n, 4, 16);
    std::printf("tiled f16   512 x %6u x %5u: %8.1f us %6.2f TFLOP/s\n", n, k, time * 1e6,
                2.0 * 512 * n * k / time / 1e12);
  }
  for (const Encoding encoding : {Encoding::f16, Encoding::q8_0, Encoding::q6_k, Encoding::q4_k})
    for (const auto& [n, k] : {std::pair{2048u, 2048u},
                               {11264u, 2048u},
                               {4096u, 4096u},
                               {16384u, 4096u},
                               {28672u, 4096u},
                               {4096u, 14336u},
                               {32000u, 2048u},
                               {128256u, 4096u}}) {
      if (encoding != Encoding::f16 && n != 16384 && n != 4096) continue;
      if (late()) return;
      const double time = product_seconds(*backend, "gemv", encoding, 1, k, n, 32, 128);
      const double bytes = static_cast<double>(encoded_bytes(encoding, k, "weight")) * n;
      std::printf("gemv  %-5s %6u x %5u: %8.2f us %7.1f GB/s, %3.0f %% of the copy; less the latency %7.1f GB/s\n",
                  std::string(to_string(encoding)).c_str(), n, k, time * 1e6, bytes / time / 1e9,
                  bytes / time / bandwidth * 100, bytes / std::max(time - latency, 1e-9) / 1e9);
    }
}

}  // namespace
}  // namespace candor::webgpu

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 1024);
  try {
    candor::webgpu::measure(argc > 1 ? argv[1] : "", argc > 2 ? std::atof(argv[2]) : 150,
                            argc > 3 ? static_cast<std::uint32_t>(std::atoi(argv[3])) : 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "webgpu_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
