#include "formats/quant/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/json.h"
#include "formats/half.h"
#include "formats/quant/k_search.h"
#include "test_folder.h"

namespace candor {
namespace {

std::filesystem::path quants() {
  return shared_folder() / "goldens/quants";
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::vector<float> read_floats(const std::filesystem::path& path) {
  const std::string bytes = read_file(path, 1 << 20);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

const std::byte* as_bytes(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

double rms_error(Encoding encoding, const std::vector<float>& values, std::uint64_t cols) {
  const std::uint64_t rows = values.size() / cols;
  std::vector<std::byte> bytes(rows * padded_row_bytes(encoding, cols));
  quantize(encoding, values.data(), bytes.data(), rows, cols);
  std::vector<float> decoded(values.size());
  for (std::uint64_t row = 0; row < rows; ++row)
    dequantize(encoding, bytes.data() + row * padded_row_bytes(encoding, cols), decoded.data() + row * cols, cols);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(decoded[i]) - static_cast<double>(values[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(Codec, DecodesEveryGoldenTypeBitForBit) {
  CANDOR_SKIP_WITHOUT_SHARED();
  const Json index = parse_json(read_file(quants() / "index.json", 1 << 20), "index.json");
  int count = 0;
  for (const auto& [name, facts] : index["types"].items()) {
    const auto encoding = parse_encoding(lower(name));
    ASSERT_TRUE(encoding.has_value()) << name;
    const std::string bytes = read_file(quants() / (name + ".quant.bin"), 1 << 20);
    const std::vector<float> expected = read_floats(quants() / (name + ".dequant_f32.bin"));
    ASSERT_EQ(bytes.size(), padded_row_bytes(*encoding, expected.size())) << name;
    std::vector<float> decoded(expected.size());
    dequantize(*encoding, as_bytes(bytes), decoded.data(), decoded.size());
    EXPECT_EQ(std::memcmp(decoded.data(), expected.data(), expected.size() * sizeof(float)), 0) << name;
    ++count;
  }
  EXPECT_EQ(count, 22);
}

TEST(Codec, WritesTheReferencesBytesForSimpleTypes) {
  CANDOR_SKIP_WITHOUT_SHARED();
  const std::vector<float> input = read_floats(quants() / "input_f32.bin");
  for (const char* name : {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0"}) {
    const Encoding encoding = *parse_encoding(name);
    const std::string expected = read_file(quants() / (std::string(name) + ".quant.bin"), 1 << 20);
    std::string bytes(padded_row_bytes(encoding, input.size()), '\0');
    quantize(encoding, input.data(), reinterpret_cast<std::byte*>(bytes.data()), 1, input.size());
    EXPECT_EQ(bytes, expected) << name;
  }
}

TEST(Codec, KQuantsHaveASmallerErrorThanTheReference) {
  CANDOR_SKIP_WITHOUT_SHARED();
  const std::vector<float> input = read_floats(quants() / "input_f32.bin");
  const Json index = parse_json(read_file(quants() / "index.json", 1 << 20), "index.json");
  for (const char* name : {"q4_K", "q5_K", "q6_K"})
    EXPECT_LT(rms_error(*parse_encoding(lower(name)), input, input.size()), index["types"][name]["rmse"].get<double>())
        << name;
}

/// 65,536 values of a distribution that any standard library reproduces.
enum class Shape { uniform, bell, cubed_bell, shifted_bell };

std::vector<float> sample(Shape shape) {
  std::mt19937 random(1);
  const auto uniform = [&] { return static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f; };
  std::vector<float> values(65536);
  for (float& value : values) {
    const float first = uniform();
    const float second = uniform();
    const float third = uniform();
    const float bell = first + second + third + uniform();
    switch (shape) {
      case Shape::uniform:
        value = first;
        break;
      case Shape::bell:
        value = bell * 0.02f;
        break;
      case Shape::cubed_bell:
        value = bell * bell * bell;
        break;
      case Shape::shifted_bell:
        value = bell + 3.0f;
        break;
    }
  }
  return values;
}

/// Root mean square errors of ggml's reference quantizers on sample(shape), measured with its source.
struct ReferenceErrors {
  Shape shape;
  double q4_k;
  double q5_k;
  double q6_k;
};
constexpr ReferenceErrors kReferenceErrors[] = {{Shape::uniform, 0.0314600658, 0.0159225832, 0.00765652875},
                                                {Shape::bell, 0.00158839668, 0.000801444201, 0.000392683252},
                                                {Shape::cubed_bell, 0.456152413, 0.251693228, 0.120881809},
                                                {Shape::shifted_bell, 0.0921975518, 0.0457389409, 0.0400486387}};

TEST(Codec, KQuantsBeatTheReferenceOnEveryDistribution) {
  for (const ReferenceErrors& reference : kReferenceErrors) {
    const std::vector<float> values = sample(reference.shape);
    EXPECT_LT(rms_error(Encoding::q4_k, values, 1024), reference.q4_k);
    EXPECT_LT(rms_error(Encoding::q5_k, values, 1024), reference.q5_k);
    EXPECT_LT(rms_error(Encoding::q6_k, values, 1024), reference.q6_k);
  }
}

TEST(Codec, KQuantsAreTheSameOnEveryInstructionSet) {
  const auto searches = quant::k_searches();
  EXPECT_EQ(searches.back().isa, "portable");
  std::vector<float> weights(quant::kSuper);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.01f + static_cast<float>(i * 7 % 13);
  for (const Shape shape : {Shape::uniform, Shape::bell, Shape::cubed_bell, Shape::shifted_bell}) {
    const std::vector<float> values = sample(shape);
    for (std::size_t first = 0; first < 64 * quant::kSuper; first += quant::kSuper) {
      const quant::AffineBlock affine = searches.back().affine(values.data() + first, weights.data(), 15);
      const quant::SymmetricBlock symmetric = searches.back().symmetric(values.data() + first);
      for (const quant::KSearch& search : searches) {
        const quant::AffineBlock a = search.affine(values.data() + first, weights.data(), 15);
        ASSERT_TRUE(a.d == affine.d && a.dmin == affine.dmin && a.scale == affine.scale && a.min == affine.min &&
                    a.codes == affine.codes)
            << search.isa;
        const quant::SymmetricBlock s = search.symmetric(values.data() + first);
        ASSERT_TRUE(s.d == symmetric.d && s.scale == symmetric.scale && s.codes == symmetric.codes) << search.isa;
      }
    }
  }
}

TEST(Codec, ConstantsAndZerosComeBack) {
  for (const char* name :
       {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k", "f16", "bf16", "f32", "f64"}) {
    const Encoding encoding = *parse_encoding(name);
    EXPECT_EQ(rms_error(encoding, std::vector<float>(512, 0.0f), 512), 0.0) << name;
    for (const float constant : {1.0f, -1.0f, 0.37f, -1234.5f})
      EXPECT_LT(rms_error(encoding, std::vector<float>(512, constant), 512), std::fabs(constant) * 4e-3) << name;
  }
}

TEST(Codec, PartialBlocksArePaddedAndCutOff) {
  const std::vector<float> values = sample(Shape::bell);
  for (const char* name : {"q8_0", "q4_k", "q5_k", "q6_k"}) {
    const Encoding encoding = *parse_encoding(name);
    const std::uint64_t cols = 300;
    const std::uint64_t row = padded_row_bytes(encoding, cols);
    std::vector<std::byte> both(2 * row);
    quantize(encoding, values.data(), both.data(), 2, cols);
    std::vector<float> padded(512, 0.0f);
    std::copy_n(values.begin() + 300, 300, padded.begin());
    std::vector<std::byte> second(padded_row_bytes(encoding, 512));
    quantize(encoding, padded.data(), second.data(), 1, 512);
    EXPECT_EQ(std::memcmp(second.data(), both.data() + row, row), 0) << name;
    std::vector<float> cut(cols);
    std::vector<float> whole(512);
    dequantize(encoding, both.data() + row, cut.data(), cols);
    dequantize(encoding, second.data(), whole.data(), 512);
    EXPECT_TRUE(std::equal(cut.begin(), cut.end(), whole.begin())) << name;
  }
}

TEST(Codec, HostileValuesAndBytesAreDefined) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(256, 1.0f);
  for (int i = 0; i < 256; i += 3)
    values[static_cast<std::size_t>(i)] = i % 2 != 0 ? nan : (i % 4 != 0 ? infinity : -3e38f);
  std::vector<float> out(256);
  for (int e = 0; e <= static_cast<int>(Encoding::mxfp4); ++e) {
    const auto encoding = static_cast<Encoding>(e);
    std::vector<std::byte> block(padded_row_bytes(encoding, 256));
    if (can_quantize(encoding)) quantize(encoding, values.data(), block.data(), 1, 256);
    dequantize(encoding, block.data(), out.data(), 256);
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
      for (std::byte& byte : block) byte = static_cast<std::byte>(random());
      dequantize(encoding, block.data(), out.data(), 256);
    }
  }
  EXPECT_THROW(quantize(Encoding::q3_k, values.data(), nullptr, 1, 256), Error);
  EXPECT_THROW(dequantize(Encoding::a8_32, nullptr, out.data(), 32), Error);
}

TEST(Codec, Float8ValuesAreThoseOfTheSpecification) {
  const auto decode = [](Encoding encoding, int bits) {
    const auto byte = static_cast<std::byte>(bits);
    float value = 0;
    dequantize(encoding, &byte, &value, 1);
    return value;
  };
  EXPECT_EQ(decode(Encoding::f8_e4m3, 0x7e), 448.0f);
  EXPECT_EQ(decode(Encoding::f8_e4m3, 0x01), 0x1p-9f);
  EXPECT_EQ(decode(Encoding::f8_e4m3, 0x08), 0x1p-6f);
  EXPECT_EQ(decode(Encoding::f8_e4m3, 0xb8), -1.0f);
  EXPECT_TRUE(std::isnan(decode(Encoding::f8_e4m3, 0xff)));
  EXPECT_EQ(decode(Encoding::f8_e5m2, 0x7b), 57344.0f);
  EXPECT_EQ(decode(Encoding::f8_e5m2, 0x01), 0x1p-16f);
  EXPECT_TRUE(std::isinf(decode(Encoding::f8_e5m2, 0xfc)));
}

double weighted_error_of(Encoding encoding, const std::vector<std::byte>& blocks, const std::vector<float>& values,
                         const std::vector<float>& weights) {
  std::vector<float> decoded(values.size());
  dequantize(encoding, blocks.data(), decoded.data(), decoded.size());
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(decoded[i]) - static_cast<double>(values[i]);
    error += static_cast<double>(weights[i % weights.size()]) * difference * difference;
  }
  return error;
}

TEST(Codec, WeightsMakeTheirColumnsMoreExact) {
  constexpr std::size_t kRows = 64;
  constexpr std::size_t kCols = 512;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(kRows * kCols);
  for (float& value : values) value = normal(random);
  std::vector<float> weights(kCols);
  for (float& weight : weights) weight = std::exp(normal(random));
  const std::vector<float> ones(kCols, 1.0f);
  for (const Encoding encoding : {Encoding::q4_k, Encoding::q5_k}) {
    ASSERT_TRUE(can_weight(encoding, kCols));
    std::vector<std::byte> plain(kRows * padded_row_bytes(encoding, kCols));
    std::vector<std::byte> equal = plain;
    std::vector<std::byte> weighted = plain;
    quantize(encoding, values.data(), plain.data(), kRows, kCols);
    quantize_weighted(encoding, values.data(), equal.data(), kRows, kCols, ones.data());
    quantize_weighted(encoding, values.data(), weighted.data(), kRows, kCols, weights.data());
    EXPECT_EQ(plain, equal);
    EXPECT_LT(weighted_error_of(encoding, weighted, values, weights),
              0.97 * weighted_error_of(encoding, plain, values, weights));
    EXPECT_LT(weighted_error_of(encoding, plain, values, ones), weighted_error_of(encoding, weighted, values, ones));
  }
  EXPECT_FALSE(can_weight(Encoding::q4_k, 300));
  EXPECT_FALSE(can_weight(Encoding::q8_0, 512));
}

}  // namespace
}  // namespace candor
