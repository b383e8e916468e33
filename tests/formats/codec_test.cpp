#include "formats/quant/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/json.h"
#include "formats/half.h"
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

}  // namespace
}  // namespace candor
