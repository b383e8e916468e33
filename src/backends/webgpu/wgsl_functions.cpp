#include "backends/webgpu/wgsl_functions.h"

#include <cctype>
#include <charconv>
#include <vector>

#include "base/error.h"

namespace candor::webgpu {
namespace {

constexpr std::string_view kSize = "@compute @workgroup_size(";
constexpr std::string_view kVariable = "var<workgroup> ";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string first_word(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && is_word(text[size])) ++size;
  return std::string(text.substr(0, size));
}

std::uint64_t number_in(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

void add_words(std::string_view line, std::set<std::string>& words) {
  line = line.substr(0, line.find("//"));
  for (std::size_t i = 0; i < line.size();) {
    const std::string word = first_word(line.substr(i));
    if (!word.empty()) words.insert(word);
    i += word.empty() ? 1 : word.size();
  }
}

/// The type behind the colon of `name: type,`.
std::string_view type_in(std::string_view line) {
  const auto colon = line.find(": ");
  if (colon == std::string_view::npos) return {};
  std::string_view type = line.substr(colon + 2);
  type = type.substr(0, type.find("//"));
  const auto end = type.find_last_of(",;");
  return type.substr(0, end);
}

}  // namespace

WgslFunctions::WgslFunctions(std::string_view source, std::string_view file) : file_(file) {
  std::uint32_t size = 0;
  Function* function = nullptr;
  std::string structure;
  while (!source.empty()) {
    const auto end = std::min(source.find('\n'), source.size());
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    if (line.starts_with('}')) {
      function = nullptr;
      structure.clear();
    } else if (function != nullptr) {
      add_words(line, function->words);
    } else if (!structure.empty()) {
      structs_[structure] += size_of(type_in(line));
    } else if (line.starts_with("struct ")) {
      structure = first_word(line.substr(7));
      structs_[structure] = 0;
    } else if (line.starts_with(kVariable)) {
      const std::uint64_t bytes = size_of(type_in(line));
      if (bytes == 0) fail(ErrorCode::format, "{}: the size of \"{}\" is not known", file_, line);
      memory_[first_word(line.substr(kVariable.size()))] = bytes;
    } else if (line.starts_with(kSize)) {
      size = static_cast<std::uint32_t>(number_in(line.substr(kSize.size())));
    } else if (line.starts_with("fn ")) {
      function = &functions_[first_word(line.substr(3))];
      function->workgroup_size = size;
      size = 0;
    }
  }
}

std::uint64_t WgslFunctions::size_of(std::string_view type) const {
  if (type == "f32" || type == "u32") return 4;
  if (type == "vec4<f32>" || type == "vec4<u32>") return 16;
  if (const auto known = structs_.find(std::string(type)); known != structs_.end()) return known->second;
  if (!type.starts_with("array<")) return 0;
  const auto comma = type.find_last_of(',');
  if (comma == std::string_view::npos) return 0;
  return size_of(type.substr(6, comma - 6)) * number_in(type.substr(comma + 1));
}

const WgslFunctions::Function& WgslFunctions::find(const std::string& function) const {
  const auto found = functions_.find(function);
  if (found == functions_.end()) fail(ErrorCode::format, "{}: there is no function \"{}\"", file_, function);
  return found->second;
}

std::uint32_t WgslFunctions::workgroup_size(const std::string& function) const {
  const std::uint32_t size = find(function).workgroup_size;
  if (size == 0) fail(ErrorCode::format, "{}: function \"{}\" is no entry", file_, function);
  return size;
}

std::uint64_t WgslFunctions::workgroup_bytes(const std::string& function) const {
  (void)find(function);
  std::set<std::string> seen{function};
  std::vector<std::string> open{function};
  std::uint64_t bytes = 0;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    for (const std::string& word : functions_.at(name).words) {
      if (!seen.insert(word).second) continue;
      if (const auto variable = memory_.find(word); variable != memory_.end()) bytes += variable->second;
      if (functions_.contains(word)) open.push_back(word);
    }
  }
  return bytes;
}

}  // namespace candor::webgpu
