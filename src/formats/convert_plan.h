// A conversion before a byte of it is written: for each tensor of the output where it comes from, its name, shape and
// encoding. Refuses what the options or the format do not allow. Private to src/formats.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "formats/convert.h"

namespace candor {

/// One tensor's way from the source to the output.
struct PlannedTensor {
  std::vector<const TensorInfo*> sources;  ///< one, or those that are stacked
  const AddedTensor* added = nullptr;      ///< where there is no source
  TensorInfo output;
  TensorEdit edit;  ///< of each source

  /// Whether stored bytes are moved as they are.
  [[nodiscard]] bool keeps_bytes() const;
};

/// The output's tensors in order; names of those that are left out go to `left_out`.
[[nodiscard]] std::vector<PlannedTensor> plan_conversion(const ModelSource& source, const ConvertOptions& options,
                                                         std::vector<std::string>& left_out);

[[nodiscard]] std::vector<TensorInfo> outputs_of(const std::vector<PlannedTensor>& plan);

/// Drops the tensors that the header's `tensors` does not have; returns their names.
[[nodiscard]] std::vector<std::string> keep_listed(std::vector<PlannedTensor>& plan, const Json& header);

}  // namespace candor
