// Embedding rows in every encoding; quantized ones bit for bit as their reference dequantizes them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "kernels/cpu/quantized_weight.h"

namespace candor::cpu::testing {
namespace {

const std::vector<std::uint32_t> kTokens{3, 0, 6, 3, 1};

Slot index_slot(std::span<const std::uint32_t> indices) {
  Slot slot(static_cast<std::uint32_t>(indices.size()), 1, Encoding::u32);
  for (std::uint32_t r = 0; r < slot.rows(); ++r) slot.row<std::uint32_t>(r)[0] = indices[r];
  return slot;
}

Slot gather(const StoredWeight& table, std::span<const std::uint32_t> tokens, double scale) {
  const Slot indices = index_slot(tokens);
  KernelCall call{.file = "cpu/gather.cpp"};
  call.inputs = {&indices};
  call.weights = {&table};
  call.constants = {{scale}};
  return run_everywhere(call, static_cast<std::uint32_t>(tokens.size()), static_cast<std::uint32_t>(table.cols));
}

TEST(Gather, PlainRows) {
  std::mt19937_64 random(1);
  for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16}) {
    for (const std::uint32_t width : {1u, 16u, 17u, 300u, 9000u}) {
      const StoredWeight table = plain_weight(random, 7, width, encoding);
      const Slot y = gather(table, kTokens, 1.5);
      for (std::uint32_t r = 0; r < y.rows(); ++r)
        for (std::uint32_t i = 0; i < width; ++i)
          ASSERT_EQ(y.row(r)[i], 1.5f * static_cast<float>(table.values[kTokens[r] * width + i]));
    }
  }
}

TEST(Gather, QuantizedRows) {
  std::mt19937_64 random(2);
  for (const Encoding encoding : {Encoding::q8_0, Encoding::q4_0, Encoding::q4_k, Encoding::q5_k, Encoding::q6_k}) {
    SCOPED_TRACE(to_string(encoding));
    const StoredWeight table = quantized_weight(random, 7, 512, encoding);
    const Slot y = gather(table, kTokens, 1);
    for (std::uint32_t r = 0; r < y.rows(); ++r)
      for (std::uint32_t i = 0; i < 512; ++i)
        ASSERT_NEAR(double{y.row(r)[i]}, table.values[kTokens[r] * 512 + i], 2e-6);
  }
}

TEST(Gather, ATokenOutsideTheTableGivesNans) {
  std::mt19937_64 random(3);
  const StoredWeight table = plain_weight(random, 7, 20, Encoding::f32);
  for (const Isa isa : available_isas()) {
    KernelCall call{.file = "cpu/gather.cpp"};
    call.weights = {&table};
    call.constants = {{1}};
    const std::vector<std::uint32_t> tokens{7, 0, 0xffffffff};
    const Slot indices = index_slot(tokens);
    call.inputs = {&indices};
    const Slot y(3, 20);
    call.run(isa, 1, y);
    for (const float x : y.row(0)) EXPECT_TRUE(std::isnan(x));
    for (const float x : y.row(1)) EXPECT_TRUE(std::isfinite(x));
    for (const float x : y.row(2)) EXPECT_TRUE(std::isnan(x));
  }
}

TEST(Gather, EqualsTheReferenceDequantization) {
  const std::filesystem::path folder = std::filesystem::path(CANDOR_SHARED_DIR) / "goldens/quants";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "reference data is not beside the checkout";
  struct Golden {
    const char* name;
    Encoding encoding;
  };
  for (const auto& [name, encoding] :
       {Golden{"q8_0", Encoding::q8_0}, Golden{"q4_0", Encoding::q4_0}, Golden{"q4_K", Encoding::q4_k},
        Golden{"q5_K", Encoding::q5_k}, Golden{"q6_K", Encoding::q6_k}}) {
    SCOPED_TRACE(name);
    const MappedFile stored(folder / (std::string(name) + ".quant.bin"));
    const MappedFile wanted(folder / (std::string(name) + ".dequant_f32.bin"));
    StoredWeight table;
    table.bytes.assign(stored.bytes().begin(), stored.bytes().end());
    table.cols = wanted.size() / sizeof(float);
    table.encoding = encoding;
    const std::vector<std::uint32_t> tokens{0};
    const Slot y = gather(table, tokens, 1);
    ASSERT_EQ(y.row_bytes(0).size(), wanted.size());
    EXPECT_EQ(std::memcmp(y.row_bytes(0).data(), wanted.bytes().data(), wanted.size()), 0);
  }
}

}  // namespace
}  // namespace candor::cpu::testing
