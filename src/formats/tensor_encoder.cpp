#include "formats/tensor_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "formats/quant/codec.h"

namespace candor {
namespace {

constexpr std::uint64_t kBandElements = 1 << 16;  // a multiple of every block size
constexpr float kAboveF16 = 65520.0f;
constexpr float kBelowF16 = 0x1p-25f;

/// Sums over the elements of a band.
struct BandSums {
  double max_error = 0;
  double squared_error = 0;
  double squares = 0;
  std::uint64_t above_f16 = 0;
  std::uint64_t below_f16 = 0;
  std::uint64_t not_finite = 0;
};

BandSums compare(std::span<const float> before, std::span<const float> after) {
  BandSums sums;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const float magnitude = std::fabs(before[i]);
    if (!std::isfinite(magnitude)) {
      ++sums.not_finite;
      continue;
    }
    if (magnitude >= kAboveF16) ++sums.above_f16;
    if (magnitude <= kBelowF16 && magnitude > 0.0f) ++sums.below_f16;
    const double difference = static_cast<double>(after[i]) - static_cast<double>(before[i]);
    sums.max_error = std::max(sums.max_error, std::fabs(difference));
    sums.squared_error += difference * difference;
    sums.squares += static_cast<double>(before[i]) * static_cast<double>(before[i]);
  }
  return sums;
}

EncodingStats add_up(std::span<const BandSums> bands, std::uint64_t elements) {
  EncodingStats stats;
  double squared_error = 0;
  double squares = 0;
  for (const BandSums& band : bands) {
    stats.max_error = std::max(stats.max_error, band.max_error);
    stats.above_f16 += band.above_f16;
    stats.below_f16 += band.below_f16;
    stats.not_finite += band.not_finite;
    squared_error += band.squared_error;
    squares += band.squares;
  }
  if (elements > 0) stats.rms_error = std::sqrt(squared_error / static_cast<double>(elements));
  if (squares > 0) stats.relative_error = std::sqrt(squared_error / squares);
  return stats;
}

/// How a tensor is cut. Rows that are whole blocks follow each other without a seam and count as one row, which may be
/// cut between any two blocks; else a band is some whole rows.
struct Bands {
  std::uint64_t elements = 0;
  std::uint64_t cols = 0;  ///< of a row in one band
  std::uint64_t per_band = 0;

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>((elements + per_band - 1) / per_band); }
};

Bands cut(std::uint64_t elements, std::span<const std::uint64_t> shape, Encoding encoding, bool whole_rows) {
  const std::uint64_t cols = shape.empty() ? 1 : shape.back();
  if (!whole_rows && cols % info(encoding).block_size == 0) return {elements, kBandElements, kBandElements};
  return {elements, cols, std::max<std::uint64_t>(1, kBandElements / cols) * cols};
}

/// What every thread needs for one band.
struct Scratch {
  std::vector<float> before;
  std::vector<float> after;
};

/// Encodes the band that `before` holds, and decodes it again into `after`.
void encode_band(Encoding encoding, std::uint64_t cols, Scratch& scratch, std::uint64_t elements, std::byte* out,
                 std::span<const float> column_weights) {
  for (std::uint64_t done = 0; done < elements; done += cols) {
    const std::uint64_t count = std::min(cols, elements - done);
    if (column_weights.empty()) {
      quantize(encoding, scratch.before.data() + done, out, 1, count);
    } else {
      quantize_weighted(encoding, scratch.before.data() + done, out, 1, count, column_weights.data());
    }
    dequantize(encoding, out, scratch.after.data() + done, count);
    out += padded_row_bytes(encoding, count);
  }
}

}  // namespace

EncodingStats encode_tensor(const ElementReader& read, std::span<const std::uint64_t> shape, Encoding encoding,
                            std::span<std::byte> out, ThreadPool& pool, std::span<const float> column_weights) {
  const std::uint64_t elements = checked_elements(shape, "tensor");
  if (elements == 0) return {};
  if (!column_weights.empty() && (shape.empty() || column_weights.size() != shape.back()))
    fail(ErrorCode::internal, "{} column weights for shape {}", column_weights.size(), print_shape(shape));
  if (!column_weights.empty() && !can_weight(encoding, shape.back())) column_weights = {};
  const Bands bands = cut(elements, shape, encoding, !column_weights.empty());
  const std::uint64_t band_bytes = bands.per_band / bands.cols * padded_row_bytes(encoding, bands.cols);
  if (out.size() != padded_bytes(encoding, shape, TensorLayout::rows, "tensor") || !can_quantize(encoding))
    fail(ErrorCode::internal, "{} bytes for shape {} in {}", out.size(), print_shape(shape), to_string(encoding));
  const std::uint64_t longest = std::min(elements, bands.per_band);
  std::vector<Scratch> scratch(pool.size(), {std::vector<float>(longest), std::vector<float>(longest)});
  std::vector<BandSums> sums(bands.count());
  pool.parallel_for(bands.count(), [&](std::uint32_t band, unsigned worker) {
    Scratch& own = scratch[worker];
    const std::uint64_t first = band * bands.per_band;
    const std::uint64_t count = std::min(bands.per_band, elements - first);
    read(first, std::span(own.before).first(count));
    encode_band(encoding, bands.cols, own, count, out.data() + band * band_bytes, column_weights);
    sums[band] = compare(std::span(own.before).first(count), std::span(own.after).first(count));
  });
  return add_up(sums, elements);
}

ElementReader stored_elements(const TensorInfo& tensor, std::span<const std::byte> bytes) {
  if (tensor.layout == TensorLayout::columns)
    fail(ErrorCode::unsupported, "tensor \"{}\" is stored in columns", printable(tensor.name));
  const EncodingInfo& type = info(tensor.encoding);
  const std::uint64_t cols = tensor.shape.empty() ? 1 : tensor.shape.back();
  const bool seamless = tensor.layout == TensorLayout::flat || cols % type.block_size == 0;
  if (seamless)
    return [encoding = tensor.encoding, &type, bytes](std::uint64_t first, std::span<float> out) {
      const std::uint64_t skipped = first % type.block_size;  // not 0 only where rows and blocks of the target differ
      const std::byte* from = bytes.data() + first / type.block_size * type.block_bytes;
      if (skipped == 0) {
        dequantize(encoding, from, out.data(), out.size());
        return;
      }
      std::vector<float> longer(skipped + out.size());
      dequantize(encoding, from, longer.data(), longer.size());
      std::copy(longer.begin() + static_cast<std::ptrdiff_t>(skipped), longer.end(), out.begin());
    };
  const std::uint64_t row_bytes = padded_row_bytes(tensor.encoding, cols);
  return [encoding = tensor.encoding, bytes, cols, row_bytes](std::uint64_t first, std::span<float> out) {
    std::vector<float> row(cols);
    while (!out.empty()) {
      const std::uint64_t skipped = first % cols;
      const std::uint64_t taken = std::min<std::uint64_t>(cols - skipped, out.size());
      dequantize(encoding, bytes.data() + first / cols * row_bytes, row.data(), cols);
      std::copy_n(row.begin() + static_cast<std::ptrdiff_t>(skipped), taken, out.begin());
      first += taken;
      out = out.subspan(taken);
    }
  };
}

Json to_json(const EncodingStats& stats) {
  return {{"maxError", stats.max_error}, {"rmsError", stats.rms_error}, {"relativeError", stats.relative_error},
          {"aboveF16", stats.above_f16}, {"belowF16", stats.below_f16}, {"notFinite", stats.not_finite}};
}

EncodingStats stats_from_json(const Json& json) {
  const auto error = [&](const char* key) {  // JSON has no infinity; it was written as null
    const Json& value = json.at(key);
    return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
  };
  const auto count = [&](const char* key) { return json.at(key).get<std::uint64_t>(); };
  return {error("maxError"), error("rmsError"), error("relativeError"),
          count("aboveF16"), count("belowF16"), count("notFinite")};
}

}  // namespace candor
