// The functions of a WGSL source: how large an entry's workgroup is, and how much workgroup memory it and what it calls
// declare. Goals: limits are known before a device is asked for. Not a goal: a parser; functions begin and end at the
// start of a line, and names are words.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace candor::webgpu {

class WgslFunctions {
 public:
  /// Throws Error(format), naming `file`, for a variable of workgroup memory whose type is not known.
  WgslFunctions(std::string_view source, std::string_view file);

  /// Both throw Error(format) if there is no such function, and the first if it is no entry.
  [[nodiscard]] std::uint32_t workgroup_size(const std::string& function) const;
  [[nodiscard]] std::uint64_t workgroup_bytes(const std::string& function) const;

 private:
  struct Function {
    std::uint32_t workgroup_size = 0;  ///< 0: no entry
    std::set<std::string> words;       ///< of its body
  };

  [[nodiscard]] const Function& find(const std::string& function) const;
  [[nodiscard]] std::uint64_t size_of(std::string_view type) const;

  std::string file_;
  std::map<std::string, Function> functions_;
  std::map<std::string, std::uint64_t> memory_;   ///< workgroup variables and their bytes
  std::map<std::string, std::uint64_t> structs_;  ///< and theirs
};

}  // namespace candor::webgpu
