// How large the inputs of a matrix's columns are, as far as the model's own weights tell: a matrix that reads the
// output of a norm gets columns as large as the norm's gains. Errors of large columns cost more, and the quantizers of
// q4_k and q5_k can count them so. Data-free; not a goal: calibration on texts.
#pragma once

#include <vector>

#include "formats/model_source.h"

namespace candor {

/// The second moment of each column's input, up to a common factor: the squared gains of the norm before the matrix,
/// none below a hundredth of their mean. Empty if it is not known: other matrices than query, key, value, gate and up
/// projections, and layers with other norms than the two of Llama.
[[nodiscard]] std::vector<float> column_weights(const ModelSource& source, const TensorInfo& matrix);

}  // namespace candor
