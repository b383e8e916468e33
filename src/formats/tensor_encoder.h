// One tensor from one encoding to another, in bands of rows by many threads, with what it cost. Bands are small, so
// memory is the tensor's own bytes and a little scratch; sums of errors are added in band order, so that they do not
// depend on the threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/json.h"
#include "base/thread_pool.h"
#include "formats/tensor.h"

namespace candor {

/// What re-encoding did to a tensor's values.
struct EncodingStats {
  double max_error = 0;          ///< largest |new − old|
  double rms_error = 0;          ///< root of the mean of (new − old)²
  double relative_error = 0;     ///< rms_error over the root mean square of the old values
  std::uint64_t above_f16 = 0;   ///< finite values that binary16 makes infinite (|x| ≥ 65520)
  std::uint64_t below_f16 = 0;   ///< values other than 0 that binary16 makes 0 (|x| ≤ 2^-25)
  std::uint64_t not_finite = 0;  ///< infinities and NaNs
};

[[nodiscard]] Json to_json(const EncodingStats& stats);
[[nodiscard]] EncodingStats stats_from_json(const Json& json);

/// Writes elements [first, first + out.size()) of a tensor, in row-major order, as float32. Called by many threads at
/// once; must not throw.
using ElementReader = std::function<void(std::uint64_t first, std::span<float> out)>;

/// Encodes a tensor of this shape in layout rows, where rows are whole blocks of `encoding` or are padded. `out` has
/// padded_bytes(encoding, shape, rows) bytes. `column_weights`, one a column or none at all, says how much errors count
/// (quantize_weighted); encodings that take no weights ignore it.
EncodingStats encode_tensor(const ElementReader& read, std::span<const std::uint64_t> shape, Encoding encoding,
                            std::span<std::byte> out, ThreadPool& pool, std::span<const float> column_weights = {});

/// A reader of a stored tensor whose bytes lie in one piece; they must outlive it. Layout columns is not read.
[[nodiscard]] ElementReader stored_elements(const TensorInfo& tensor, std::span<const std::byte> bytes);

}  // namespace candor
