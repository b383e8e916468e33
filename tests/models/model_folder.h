// A small Hugging Face folder that a test can change before it is written: a copy of a reference model, or one put
// together tensor by tensor.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "formats/safetensors.h"

namespace candor {

class ModelFolder {
 public:
  struct Tensor {
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
  };

  Json config = Json::object();
  std::map<std::string, Tensor> tensors;

  ModelFolder() = default;
  /// A copy of a folder whose weights are float32.
  explicit ModelFolder(const std::filesystem::path& source)
      : config(parse_json(read_file(source / "config.json", 1 << 20), "config.json")) {
    const MappedFile file(source / "model.safetensors");
    for (const TensorInfo& tensor : parse_safetensors(file.bytes(), source.string()).tensors) {
      Tensor& copy = tensors[tensor.name];
      copy.shape = tensor.shape;
      copy.values.resize(tensor.elements());
      std::memcpy(copy.values.data(), file.bytes().data() + tensor.extents[0].offset, tensor.bytes);
    }
  }
  ~ModelFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  /// Writes config.json and model.safetensors into a folder that goes with this object.
  const std::filesystem::path& write() {
    if (path_.empty()) {
      const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
      std::string name = std::string("candor_") + test->test_suite_name() + "_" + test->name();
      for (char& c : name)
        if (c == '/') c = '_';
      static int folders = 0;
      name += "_" + std::to_string(::getpid()) + "_" + std::to_string(folders++);
      path_ = std::filesystem::temp_directory_path() / name;
    }
    std::filesystem::create_directories(path_);
    std::ofstream(path_ / "config.json") << config.dump();
    Json header = Json::object();
    std::uint64_t offset = 0;
    for (const auto& [tensor_name, tensor] : tensors) {
      const std::uint64_t bytes = tensor.values.size() * sizeof(float);
      header[tensor_name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
      offset += bytes;
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::ofstream out(path_ / "model.safetensors", std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out.write(text.data(), static_cast<std::streamsize>(length));
    for (const auto& entry : tensors)
      out.write(reinterpret_cast<const char*>(entry.second.values.data()),
                static_cast<std::streamsize>(entry.second.values.size() * sizeof(float)));
    return path_;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace candor
