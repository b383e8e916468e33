// candor-bench-kernels: each CPU kernel at real shapes, as a share of what the machine can do. Decoding is held against
// the read bandwidth and prefill against the multiply-add peak. Machines have fast and slow spells, so each repetition
// measures the limit right before the kernel, and medians of ratios are reported. JSON on standard output.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "bench_slots.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/probe.h"

namespace candor::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  unsigned threads = 0;
  std::string isa;
  std::string filter;
  int repetitions = 7;
};

/// What a kernel is held against.
enum class Limit { read, multiply };

struct Measured {
  double seconds = 0;  ///< median of one call
  double share = 0;    ///< median share of the limit measured right before
  double limit = 0;    ///< median of the limit
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options), pool_(options.threads), probe_(pool_), isa_(pick_isa(options.isa)) {}

  Json run() {
    for (const auto& [n, k] : {Pair{2048, 2048}, Pair{5632, 2048}, Pair{2048, 5632}, Pair{32000, 2048}, Pair{512, 512},
                               Pair{1280, 512}, Pair{8192, 512}}) {
      for (const char* type : kEncodings) {
        matmul(type, 1, n, k);
        if (n != 32000) matmul(type, 256, n, k);
      }
    }
    for (const char* type : kEncodings) {
      experts(type, 1, 768, 2048);
      experts(type, 256, 768, 2048);
    }
    for (const std::uint32_t context : {256u, 4096u}) {
      for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::q8_0}) {
        attention(encoding, 1, context, 32, 4, 64);
        attention(encoding, 256, context, 32, 4, 64);
        attention(encoding, 1, context, 8, 4, 64);
      }
    }
    elementwise();
    return {{"isa", std::string(cpu::to_string(isa_))},
            {"threads", pool_.size()},
            {"readBytesPerSecond", probe_.measure()},
            {"fmaOperationsPerSecond", cpu::measure_fma_peak(pool_)},
            {"kernels", results_}};
  }

 private:
  static constexpr const char* kEncodings[] = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k"};

  struct Pair {
    std::uint32_t n, k;
  };

  static cpu::Isa pick_isa(const std::string& name) {
    for (const cpu::Isa isa : cpu::available_isas())
      if (name.empty() || to_string(isa) == name) return isa;
    fail(ErrorCode::usage, "--isa {}: this processor has {}", name, [] {
      std::string all;
      for (const cpu::Isa isa : cpu::available_isas()) all += fmt::format(" {}", to_string(isa));
      return all;
    }());
  }

  const cpu::Kernel& kernel(const std::string& file, const char* entry = "main") const {
    const cpu::Kernel* found = cpu::find_kernel(isa_, file, entry);
    if (found == nullptr) fail(ErrorCode::not_found, "no kernel {}#{}", file, entry);
    return *found;
  }

  [[nodiscard]] bool wanted(const std::string& name) const { return name.find(options_.filter) != std::string::npos; }

  /// Times `call(i)` for rising i; `units` are bytes or operations of one call.
  template <typename Call>
  Measured measure(Limit limit, double units, const Call& call) {
    std::vector<double> seconds, shares, limits;
    std::uint32_t index = 0;
    call(index++);
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      const double available = limit == Limit::read ? probe_.measure() : cpu::measure_fma_peak(pool_);
      const auto start = Clock::now();
      std::uint32_t calls = 0;
      double elapsed = 0;
      do {
        call(index++);
        ++calls;
        elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      } while (elapsed < 0.03);
      seconds.push_back(elapsed / calls);
      limits.push_back(available);
      shares.push_back(units * calls / elapsed / available);
    }
    return {median(seconds), median(shares), median(limits)};
  }

  void report(const std::string& name, Limit limit, double units, const Measured& measured) {
    const bool read = limit == Limit::read;
    results_.push_back({{"name", name},
                        {"seconds", measured.seconds},
                        {read ? "bytesPerSecond" : "operationsPerSecond", units / measured.seconds},
                        {"limit", read ? "read" : "multiply"},
                        {"share", measured.share}});
    fmt::print(stderr, "{:44} {:10.1f} us {:8.1f} {} {:6.1f} % of {:.1f}\n", name, measured.seconds * 1e6,
               units / measured.seconds * 1e-9, read ? "GB/s   " : "GFLOP/s", measured.share * 100,
               measured.limit * 1e-9);
  }

  void matmul(const std::string& type, std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    const std::string name = fmt::format("matmul_{} {}x{}x{}", type, m, n, k);
    if (!wanted(name)) return;
    const cpu::Kernel& product = kernel("cpu/matmul_" + type + ".cpp");
    const Encoding weight_encoding = *parse_encoding(type);
    // Decoding reads each weight once a token, from memory: as many copies as caches do not hold.
    const std::uint64_t bytes = product.packed_bytes(n, k);
    const std::uint64_t copies = m == 1 ? std::max<std::uint64_t>(1, (std::uint64_t{160} << 20) / bytes) : 1;
    const Bytes weights = random_bytes(bytes * copies, random_);
    const Slot src = activations(weight_encoding, m, k), dst(m, n);
    Call call(product, pool_);
    call.inputs = {src.view()};
    call.weights = {{weights.data(), n, k, weight_encoding}};
    const Limit limit = m == 1 ? Limit::read : Limit::multiply;
    const double units = m == 1 ? static_cast<double>(bytes) : 2.0 * m * n * k;
    report(name, limit, units, measure(limit, units, [&](std::uint32_t i) {
             call.weights[0].data = weights.data() + i % copies * bytes;
             call.run(dst);
           }));
  }

  /// What a product with weights of `weight` reads: m rows of k columns.
  Slot activations(Encoding weight, std::uint32_t m, std::uint32_t k) {
    const std::uint32_t block = info(weight).block_size;
    Slot x(m, k);
    x.fill(random_);
    if (block == 1) return x;
    Slot quantized(m, k, block == 256 ? Encoding::a8_256 : Encoding::a8_32);
    Call quantize(kernel(block == 256 ? "cpu/quantize_a8_256.cpp" : "cpu/quantize_a8_32.cpp"), pool_);
    quantize.inputs = {x.view()};
    quantize.run(quantized);
    return quantized;
  }

  /// Eight experts a token; each token has others, of as many as caches do not hold.
  void experts(const std::string& type, std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    constexpr std::uint32_t kPerToken = 8;
    const std::string name = fmt::format("expert_matmul_{} {}x{}x{}, {} a token", type, m, n, k, kPerToken);
    if (!wanted(name)) return;
    const cpu::Kernel& product = kernel("cpu/expert_matmul.cpp", type.c_str());
    const Encoding weight_encoding = *parse_encoding(type);
    const std::uint64_t bytes = product.packed_bytes(n, k);
    const auto count =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(2 * kPerToken, (std::uint64_t{160} << 20) / bytes));
    const Bytes weights = random_bytes(bytes * count, random_);
    const Slot src = activations(weight_encoding, m, k), chosen(m, kPerToken, Encoding::u32), dst(m, kPerToken * n);
    Call call(product, pool_);
    call.inputs = {src.view(), chosen.view()};
    for (std::uint32_t i = 0; i < count; ++i)
      call.weights.push_back({weights.data() + i * bytes, n, k, weight_encoding});
    call.constants = {{double(count)}, {double(kPerToken)}, {1}};
    const Limit limit = m == 1 ? Limit::read : Limit::multiply;
    const double units = m == 1 ? static_cast<double>(bytes) * kPerToken : 2.0 * m * n * k * kPerToken;
    report(name, limit, units, measure(limit, units, [&](std::uint32_t i) {
             for (std::uint32_t row = 0; row < m; ++row)
               for (std::uint32_t j = 0; j < kPerToken; ++j) {
                 const std::uint32_t expert = ((i + row) * kPerToken + j) % count;
                 std::memcpy(chosen.view().data + row * chosen.view().row_bytes + j * sizeof expert, &expert,
                             sizeof expert);
               }
             call.run(dst);
           }));
  }

  void attention(Encoding encoding, std::uint32_t rows, std::uint32_t context, std::uint32_t heads,
                 std::uint32_t kv_heads, std::uint32_t head_dim) {
    const std::string name = fmt::format("attention_{} {} rows, context {}, {}/{}x{}", to_string(encoding), rows,
                                         context, heads, kv_heads, head_dim);
    if (!wanted(name)) return;
    constexpr std::uint32_t kPage = 64;
    Call call(kernel("cpu/attention.cpp"), pool_);
    call.constants = {{double(heads)}, {double(kv_heads)}, {double(head_dim)}, {0.125}, {0}, {0}, {1}};
    call.context = context;
    const std::uint64_t page_bytes = call.kv_page_bytes(kPage, encoding);
    const std::uint32_t pages = (context + kPage - 1) / kPage;
    const Bytes memory(page_bytes * pages);
    std::vector<std::uint32_t> table(pages);
    for (std::uint32_t i = 0; i < pages; ++i) table[i] = i;
    const KvCache cache{memory.data(), page_bytes, kPage, encoding};
    const Segment segment{.first_row = 0, .rows = rows, .first_position = context - rows, .kv_pages = table.data()};
    call.batch.segments = {&segment, 1};
    call.kv = &cache;
    Slot q(rows, heads * head_dim), k(rows, kv_heads * head_dim), v(rows, kv_heads * head_dim),
        dst(rows, heads * head_dim);
    for (Slot* slot : {&q, &k, &v}) slot->fill(random_);
    call.inputs = {q.view(), k.view(), v.view()};
    const double seen = context - (rows - 1) / 2.0;  // positions a row sees, on average
    const Limit limit = rows == 1 ? Limit::read : Limit::multiply;
    const double element = double(info(encoding).block_bytes) / info(encoding).block_size;
    const double units =
        rows == 1 ? 2.0 * context * kv_heads * head_dim * element : 4.0 * rows * seen * heads * head_dim;
    report(name, limit, units, measure(limit, units, [&](std::uint32_t) { call.run(dst); }));
  }

  /// Small kernels: bytes read and written, all in caches.
  void elementwise() {
    for (const std::uint32_t rows : {1u, 256u}) {
      one("rmsnorm", rows, 2048, {{1e-5}, {2048}, {0}}, 1, 1);
      one("residual_add", rows, 2048, {}, 2, 0);
      one("gated_activation", rows, 5632, {{0}}, 2, 0);
      one("quantize_a8_32", rows, 2048, {}, 1, 0, Encoding::a8_32);
      one("quantize_a8_256", rows, 2048, {}, 1, 0, Encoding::a8_256);
      rope(rows);
    }
    sample();
  }

  void one(const std::string& file, std::uint32_t rows, std::uint32_t cols, std::vector<std::vector<double>> constants,
           int inputs, int weights, Encoding out = Encoding::f32) {
    const std::string name = fmt::format("{} {}x{}", file, rows, cols);
    if (!wanted(name)) return;
    Call call(kernel("cpu/" + file + ".cpp"), pool_);
    call.constants = std::move(constants);
    Slot a(rows, cols), b(rows, cols), dst(rows, cols, out);
    a.fill(random_);
    b.fill(random_);
    call.inputs = {a.view(), b.view()};
    call.inputs.resize(static_cast<std::size_t>(inputs));
    if (weights > 0) call.weights = {{b.view().data, 1, cols, Encoding::f32}};
    const double units = 4.0 * (inputs + 1) * rows * cols;
    report(name, Limit::read, units, measure(Limit::read, units, [&](std::uint32_t) { call.run(dst); }));
  }

  void rope(std::uint32_t rows) {
    for (const double style : {0.0, 1.0}) {
      const std::string name = fmt::format("rope {} {}x2048", style == 0 ? "half" : "interleaved", rows);
      if (!wanted(name)) continue;
      Call call(kernel("cpu/rope.cpp"), pool_);
      std::vector<double> frequencies;
      for (int i = 0; i < 32; ++i) frequencies.push_back(1.0 / (1 + i * i));
      call.constants = {{64}, {style}, frequencies, {1}};
      std::vector<std::uint32_t> positions(rows, 777);
      call.batch.positions = positions;
      Slot x(rows, 2048), dst(rows, 2048);
      x.fill(random_);
      call.inputs = {x.view()};
      const double units = 8.0 * rows * 2048;
      report(name, Limit::read, units, measure(Limit::read, units, [&](std::uint32_t) { call.run(dst); }));
    }
  }

  void sample() {
    const SamplerParameters cases[] = {{}, {.temperature = 0.8f, .top_p = 0.95f}, {.temperature = 0.8f, .top_k = 40}};
    for (const SamplerParameters& parameters : cases) {
      const std::string name = fmt::format("sample 32000 temperature {} top-p {} top-k {}", parameters.temperature,
                                           parameters.top_p, parameters.top_k);
      if (!wanted(name)) continue;
      Call call(kernel("cpu/sample.cpp"), pool_);
      const Segment segment{.first_row = 0, .rows = 1, .first_position = 5, .sampler = &parameters};
      call.batch.segments = {&segment, 1};
      Slot logits(1, 32000), dst(1, 1, Encoding::u32);
      logits.fill(random_);
      call.inputs = {logits.view()};
      const double units = 4.0 * 32000;
      report(name, Limit::read, units, measure(Limit::read, units, [&](std::uint32_t) { call.run(dst); }));
    }
  }

  Options options_;
  ThreadPool pool_;
  cpu::ReadProbe probe_;
  cpu::Isa isa_;
  std::mt19937_64 random_{1};
  Json results_ = Json::array();
};

}  // namespace
}  // namespace candor::bench

int main(int argc, char** argv) {
  candor::bench::Options options;
  CLI::App app{"Measures each CPU kernel as a share of the machine's limits"};
  app.add_option("--threads", options.threads, "threads; 0: one for each processor");
  app.add_option("--isa", options.isa, "instruction set; the best if not given");
  app.add_option("--filter", options.filter, "only kernels whose name holds this text");
  app.add_option("--repetitions", options.repetitions, "measurements of each kernel")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    fmt::print("{}\n", candor::to_js_json(candor::bench::Bench(options).run(), 2));
  } catch (const candor::Error& error) {
    fmt::print(stderr, "candor-bench-kernels: {}\n", error.what());
    return candor::exit_status(error.code());
  }
  return 0;
}
