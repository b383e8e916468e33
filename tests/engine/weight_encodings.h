// A model with its matrices in one encoding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/engine.h"
#include "formats/convert.h"
#include "formats/test_folder.h"

namespace candor {

/// Writes an artifact of `model` in which every matrix whose rows are whole blocks has this encoding. Returns how many
/// there are.
inline std::size_t encode_matrices(const std::filesystem::path& model, Encoding encoding,
                                   const std::filesystem::path& output) {
  const ModelSource source = ModelSource::open(model);
  Json map = Json::object();
  for (const TensorInfo& tensor : source.tensors())
    if (tensor.shape.size() == 2 && tensor.shape[0] > 1 && tensor.shape[1] % info(encoding).block_size == 0)
      map[tensor.name] = to_string(encoding);
  const std::size_t count = map.size();
  if (count == 0) return 0;
  ConvertOptions choices;
  choices.output = output;
  choices.map = QuantMap(map, "map");
  choices.make_header = [](const ModelSource& planned) { return runtime::generate_manifest(planned, {}); };
  ThreadPool pool(2);
  (void)convert(source, choices, pool);
  return count;
}

}  // namespace candor
