#include "backends/webgpu/wgsl_interface.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "backends/webgpu/wgsl_functions.h"
#include "base/error.h"

namespace candor::webgpu {
namespace {

/// Reads one line from left to right.
class Line {
 public:
  Line(std::string_view text, std::string_view file, std::size_t number) : text_(text), file_(file), number_(number) {}

  [[nodiscard]] bool take(std::string_view word) {
    skip_blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) refuse();
  }
  std::string name() {
    skip_blanks();
    std::size_t size = 0;
    while (size < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[size])) != 0 || text_[size] == '_'))
      ++size;
    if (size == 0) refuse();
    std::string out(text_.substr(0, size));
    text_.remove_prefix(size);
    return out;
  }
  std::uint32_t number() {
    const std::string digits = name();
    std::uint32_t out = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (error != std::errc() || end != digits.data() + digits.size()) refuse();
    return out;
  }
  [[noreturn]] void refuse() const {
    fail(ErrorCode::format, "{}, line {}: is no declaration of the form that backends/webgpu/wgsl_interface.h tells",
         file_, number_);
  }

 private:
  void skip_blanks() {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
  }

  std::string_view text_, file_;
  std::size_t number_;
};

WgslBinding parse_binding(Line& line) {
  WgslBinding binding;
  line.expect("(0)");
  line.expect("@binding(");
  binding.binding = line.number();
  line.expect(")");
  binding.uniform = line.take("var<uniform>");
  if (binding.uniform) {
    binding.name = line.name();
    line.expect(": Params;");
    return binding;
  }
  line.expect("var<storage,");
  binding.writes = line.take("read_write");
  if (!binding.writes) line.expect("read");
  line.expect(">");
  binding.name = line.name();
  line.expect(":");
  return binding;
}

WgslParameter parse_parameter(Line& line) {
  WgslParameter parameter;
  parameter.name = line.name();
  line.expect(":");
  parameter.is_float = line.take("f32");
  if (!parameter.is_float) line.expect("u32");
  line.expect(",");
  return parameter;
}

WgslCount parse_count(Line& line) {
  WgslCount count;
  count.fold = line.take("fold(");
  count.factors.push_back(line.name());
  while (line.take("*")) count.factors.push_back(line.name());
  if (line.take("/")) count.divisor = line.name();
  if (line.take("+")) count.addend = line.name();
  if (count.fold) line.expect(")");
  return count;
}

/// Counts up to the closing parenthesis.
std::vector<WgslCount> parse_counts(Line& line) {
  std::vector<WgslCount> counts;
  do {
    counts.push_back(parse_count(line));
  } while (line.take(","));
  line.expect(")");
  return counts;
}

WgslPass parse_pass(Line& line, const std::vector<WgslBinding>& bindings) {
  WgslPass pass;
  pass.function = line.name();
  line.expect("(");
  do {
    const std::string name = line.name();
    const auto found = std::find_if(bindings.begin(), bindings.end(),
                                    [&](const WgslBinding& binding) { return binding.name == name; });
    if (found == bindings.end()) line.refuse();
    pass.bindings.push_back(*found);
  } while (line.take(","));
  line.expect(")");
  line.expect("dispatch(");
  pass.dispatch = parse_counts(line);
  if (line.take("when end >")) pass.beyond = line.number();
  return pass;
}

WgslEntry parse_entry(Line& line, const std::vector<WgslBinding>& bindings) {
  WgslEntry entry;
  entry.passes.push_back(parse_pass(line, bindings));
  entry.name = entry.passes.front().function;
  if (line.take("scratch(")) entry.scratch = parse_counts(line);
  entry.single = line.take("single");
  return entry;
}

/// What only the functions say: workgroup sizes and memory.
void add_functions(WgslInterface& interface, std::string_view source, std::string_view file) {
  const WgslFunctions functions(source, file);
  for (WgslEntry& entry : interface.entries)
    for (WgslPass& pass : entry.passes) {
      pass.workgroup_size = functions.workgroup_size(pass.function);
      pass.workgroup_bytes = functions.workgroup_bytes(pass.function);
    }
}

}  // namespace

const WgslEntry* WgslInterface::find(std::string_view entry) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const WgslEntry& known) { return known.name == entry; });
  return found == entries.end() ? nullptr : &*found;
}

WgslInterface parse_wgsl(const std::string_view source, std::string_view file) {
  WgslInterface out;
  std::string_view rest = source;
  std::vector<WgslBinding> bindings;
  bool in_parameters = false;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    Line line(rest.substr(0, end), file, number);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (in_parameters) {
      in_parameters = !line.take("}");
      if (in_parameters) out.parameters.push_back(parse_parameter(line));
    } else if (line.take("struct Params {")) {
      in_parameters = true;
    } else if (line.take("@group")) {
      bindings.push_back(parse_binding(line));
    } else if (line.take("override ")) {
      const std::string name = line.name();
      line.expect(": u32");
      if (line.take(";")) out.overrides.push_back(name);
    } else if (line.take("// entry ")) {
      out.entries.push_back(parse_entry(line, bindings));
    } else if (line.take("// then ")) {
      if (out.entries.empty()) line.refuse();
      out.entries.back().passes.push_back(parse_pass(line, bindings));
    }
  }
  add_functions(out, source, file);
  return out;
}

}  // namespace candor::webgpu
