#include "cli/kernel_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <utility>

#include "backends/cpu/backend.h"
#include "base/error.h"
#include "base/progress.h"
#include "cli/kernel_call.h"
#include "cli/output.h"
#include "cli/table.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/probe.h"

namespace candor::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// What a kernel is held against: memory read, multiply-adds in f32, or multiply-adds of int8.
enum class Limit { read, f32, int8 };

std::string_view to_string(Limit limit) {
  return limit == Limit::read ? "read" : limit == Limit::f32 ? "f32 multiply-adds" : "int8 multiply-adds";
}

struct Measured {
  double seconds = 0;  ///< median of one call
  double share = 0;    ///< median share of the limit measured right before
  double limit = 0;    ///< median of the limit
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class KernelBench {
 public:
  explicit KernelBench(const KernelBenchOptions& options)
      : options_(options), pool_(options.threads), probe_(pool_), isa_(cpu::choose_isa(options.isa)) {}

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
    if (jobs_.empty()) fail(ErrorCode::usage, "--filter {}: no kernel's name holds this", printable(options_.filter));
    Progress progress("Measuring", options_.progress ? jobs_.size() : 0);
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      jobs_[i]();
      if (options_.progress) progress.update(i + 1);
    }
    return {{"isa", std::string(cpu::to_string(isa_))}, {"threads", pool_.size()}, {"kernels", results_}};
  }

 private:
  static constexpr const char* kEncodings[] = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k"};

  struct Pair {
    std::uint32_t n, k;
  };

  const cpu::Kernel& kernel(const std::string& file, const char* entry = "main") const {
    const cpu::Kernel* found = cpu::find_kernel(isa_, file, entry);
    if (found == nullptr) fail(ErrorCode::not_found, "no kernel {}#{}", file, entry);
    return *found;
  }

  /// Puts a measurement on the list.
  void later(std::function<void()> measure) { jobs_.push_back(std::move(measure)); }

  [[nodiscard]] bool wanted(const std::string& name) const { return name.find(options_.filter) != std::string::npos; }

  /// Times `call(i)` for rising i; `units` are bytes or operations of one call.
  template <typename Call>
  Measured measure(Limit limit, double units, const Call& call) {
    std::vector<double> seconds, shares, limits;
    std::uint32_t index = 0;
    call(index++);
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      const double available = measure_limit(limit);
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

  double measure_limit(Limit limit) {
    if (limit == Limit::read) return probe_.measure();
    return limit == Limit::f32 ? cpu::measure_fma_peak(pool_) : cpu::measure_dot_peak(pool_);
  }

  void report(const std::string& name, Limit limit, double units, const Measured& measured) {
    const bool read = limit == Limit::read;
    results_.push_back({{"name", name},
                        {"seconds", measured.seconds},
                        {read ? "bytesPerSecond" : "operationsPerSecond", units / measured.seconds},
                        {"limit", to_string(limit)},
                        {"limitPerSecond", measured.limit},
                        {"share", measured.share}});
  }

  /// The limit of products with weights of this type.
  static Limit product_limit(Encoding weight) { return info(weight).block_size == 1 ? Limit::f32 : Limit::int8; }

  void matmul(const std::string& type, std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    const std::string name = fmt::format("matmul_{} {}x{}x{}", type, m, n, k);
    if (!wanted(name)) return;
    later([=, this] {
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
      const Limit limit = m == 1 ? Limit::read : product_limit(weight_encoding);
      const double units = m == 1 ? static_cast<double>(bytes) : 2.0 * m * n * k;
      report(name, limit, units, measure(limit, units, [&](std::uint32_t i) {
               call.weights[0].data = weights.data() + i % copies * bytes;
               call.run(dst);
             }));
    });
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
    later([=, this] {
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
      const Limit limit = m == 1 ? Limit::read : product_limit(weight_encoding);
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
    });
  }

  void attention(Encoding encoding, std::uint32_t rows, std::uint32_t context, std::uint32_t heads,
                 std::uint32_t kv_heads, std::uint32_t head_dim) {
    const std::string name = fmt::format("attention_{} {} rows, context {}, {}/{}x{}", to_string(encoding), rows,
                                         context, heads, kv_heads, head_dim);
    if (!wanted(name)) return;
    later([=, this] {
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
      const Limit limit = rows == 1 ? Limit::read : Limit::f32;
      const double element = double(info(encoding).block_bytes) / info(encoding).block_size;
      const double units =
          rows == 1 ? 2.0 * context * kv_heads * head_dim * element : 4.0 * rows * seen * heads * head_dim;
      report(name, limit, units, measure(limit, units, [&](std::uint32_t) { call.run(dst); }));
    });
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
    later([=, this] {
      Call call(kernel("cpu/" + file + ".cpp"), pool_);
      call.constants = constants;
      Slot a(rows, cols), b(rows, cols), dst(rows, cols, out);
      a.fill(random_);
      b.fill(random_);
      call.inputs = {a.view(), b.view()};
      call.inputs.resize(static_cast<std::size_t>(inputs));
      if (weights > 0) call.weights = {{b.view().data, 1, cols, Encoding::f32}};
      const double units = 4.0 * (inputs + 1) * rows * cols;
      report(name, Limit::read, units, measure(Limit::read, units, [&](std::uint32_t) { call.run(dst); }));
    });
  }

  void rope(std::uint32_t rows) {
    for (const double style : {0.0, 1.0}) {
      const std::string name = fmt::format("rope {} {}x2048", style == 0 ? "half" : "interleaved", rows);
      if (!wanted(name)) continue;
      later([=, this] {
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
      });
    }
  }

  void sample() {
    const SamplerParameters cases[] = {{}, {.temperature = 0.8f, .top_p = 0.95f}, {.temperature = 0.8f, .top_k = 40}};
    for (const SamplerParameters& parameters : cases) {
      const std::string name = fmt::format("sample 32000 temperature {} top-p {} top-k {}", parameters.temperature,
                                           parameters.top_p, parameters.top_k);
      if (!wanted(name)) continue;
      later([=, this] {
        Call call(kernel("cpu/sample.cpp"), pool_);
        const Segment segment{.first_row = 0, .rows = 1, .first_position = 5, .sampler = &parameters};
        call.batch.segments = {&segment, 1};
        Slot logits(1, 32000), dst(1, 1, Encoding::u32);
        logits.fill(random_);
        call.inputs = {logits.view()};
        const double units = 4.0 * 32000;
        report(name, Limit::read, units, measure(Limit::read, units, [&](std::uint32_t) { call.run(dst); }));
      });
    }
  }

  KernelBenchOptions options_;
  ThreadPool pool_;
  cpu::ReadProbe probe_;
  cpu::Isa isa_;
  std::mt19937_64 random_{1};
  std::vector<std::function<void()>> jobs_;
  Json results_ = Json::array();
};

std::string rate(const Json& kernel) {
  const bool read = kernel.contains("bytesPerSecond");
  const double value = kernel[read ? "bytesPerSecond" : "operationsPerSecond"].get<double>();
  return fmt::format("{:.1f} {}", value / 1e9, read ? "GB/s" : "GOP/s");
}

}  // namespace

Json measure_kernels(const KernelBenchOptions& options) {
  return KernelBench(options).run();
}

void print_kernel_rates(const Json& measured) {
  Table table({"kernel", ">a call", ">rate", ">of the limit", "limit"});
  for (const Json& kernel : measured["kernels"])
    table.add(
        {kernel["name"].get<std::string>(), fmt::format("{:.1f} us", kernel["seconds"].get<double>() * 1e6),
         rate(kernel), fmt::format("{:.0f} %", kernel["share"].get<double>() * 100),
         fmt::format("{:.1f} G {}", kernel["limitPerSecond"].get<double>() / 1e9, kernel["limit"].get<std::string>())});
  table.print();
}

}  // namespace candor::cli
