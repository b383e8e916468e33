#include "formats/file_kind.h"

#include <algorithm>
#include <array>

namespace candor {
namespace {

struct Signature {
  std::string_view prefix;
  std::string_view description;
};

constexpr std::array kSignatures = std::to_array<Signature>({
    {"version https://git-lfs", "it is a Git LFS pointer; fetch the real file with \"git lfs pull\""},
    {"<!DOCTYPE", "it is a web page, probably an error answer; download the file again"},
    {"<!doctype", "it is a web page, probably an error answer; download the file again"},
    {"<html", "it is a web page, probably an error answer; download the file again"},
    {"PK\x03\x04", "it is a ZIP archive or a PyTorch pickle; convert the weights to safetensors"},
    {"\x80\x02", "it is a Python pickle; convert the weights to safetensors"},
    {"\x1f\x8b", "it is compressed with gzip; decompress it"},
    {"\x28\xb5\x2f\xfd", "it is compressed with Zstandard; decompress it"},
    {"ggjt", "it is a GGML file from before GGUF; convert the model again"},
    {"tjgg", "it is a GGML file from before GGUF; convert the model again"},
    {"lmgg", "it is a GGML file from before GGUF; convert the model again"},
});

}  // namespace

std::optional<std::string_view> recognise_other_file(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto found = std::find_if(kSignatures.begin(), kSignatures.end(),
                                  [&](const Signature& signature) { return text.starts_with(signature.prefix); });
  if (found == kSignatures.end()) return std::nullopt;
  return found->description;
}

}  // namespace candor
