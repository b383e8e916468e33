#include "kernels/content_digest.h"

#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace candor::kernels {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kSourceBytes = 16ull << 20;  // no source file is near this

std::string with_unix_line_ends(std::string text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') out += text[i];
  return out;
}

std::string_view skip_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

/// The name in a line `#include "name"`.
std::optional<std::string_view> included_name(std::string_view line) {
  line = skip_blanks(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = skip_blanks(line.substr(1));
  if (!line.starts_with("include")) return std::nullopt;
  line = skip_blanks(line.substr(7));
  if (!line.starts_with('"')) return std::nullopt;
  const auto end = line.find('"', 1);
  if (end == std::string_view::npos || end == 1) return std::nullopt;
  return line.substr(1, end - 1);
}

}  // namespace

ContentDigester::ContentDigester(const fs::path& source_directory)
    : source_(fs::absolute(source_directory).lexically_normal()), kernels_(source_ / "kernels") {
  if (!source_.has_filename()) source_ = source_.parent_path();
  kernels_ = source_ / "kernels";
}

std::string ContentDigester::digest(std::string_view file, std::string_view entry) {
  const fs::path path = (kernels_ / file).lexically_normal();
  if (!is_inside(path)) fail(ErrorCode::format, "kernel file \"{}\" lies outside of {}", file, source_.string());
  Sha256 hash;
  hash.update(read(path).text);
  if (!file.ends_with(".wgsl")) {
    std::map<std::string, const Source*> headers;
    for (const fs::path& header : headers_of(path)) headers.emplace(display(header), &read(header));
    for (const auto& [name, source] : headers) hash.update(fmt::format("\n@@file:{}\n", name)).update(source->text);
  }
  hash.update(fmt::format("\n@@entry:{}", entry));
  return hash.hex();
}

std::set<fs::path> ContentDigester::files_read() const {
  std::set<fs::path> files;
  for (const auto& source : sources_) files.insert(source.first);
  return files;
}

const ContentDigester::Source& ContentDigester::read(const fs::path& path) {
  const auto found = sources_.find(path.string());
  if (found != sources_.end()) return found->second;
  Source source;
  source.text = with_unix_line_ends(read_file(path, kSourceBytes));
  source.includes = project_includes(path, source.text);
  return sources_.emplace(path.string(), std::move(source)).first->second;
}

std::set<fs::path> ContentDigester::project_includes(const fs::path& path, std::string_view text) const {
  std::set<fs::path> includes;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto name = included_name(text.substr(0, end))) {
      for (const fs::path& folder : {path.parent_path(), source_}) {
        const fs::path candidate = (folder / *name).lexically_normal();
        if (!is_inside(candidate) || !fs::is_regular_file(candidate)) continue;
        includes.insert(candidate);
        break;
      }
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return includes;
}

bool ContentDigester::is_inside(const fs::path& path) const {
  const fs::path relative = path.lexically_relative(source_);
  return !relative.empty() && *relative.begin() != "..";
}

std::string ContentDigester::display(const fs::path& path) const {
  const fs::path relative = path.lexically_relative(kernels_);
  const bool in_kernels = !relative.empty() && *relative.begin() != "..";
  return (in_kernels ? relative : path.lexically_relative(source_)).generic_string();
}

std::set<fs::path> ContentDigester::headers_of(const fs::path& file) {
  std::set<fs::path> seen = {file};
  std::vector<fs::path> open = {file};
  while (!open.empty()) {
    const fs::path path = std::move(open.back());
    open.pop_back();
    for (const fs::path& include : read(path).includes)
      if (seen.insert(include).second) open.push_back(include);
  }
  seen.erase(file);
  return seen;
}

}  // namespace candor::kernels
