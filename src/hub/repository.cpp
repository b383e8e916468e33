#include "hub/repository.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

namespace candor {
namespace {

bool is_one_of(char c, std::string_view others) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
}

bool is_repository_part(std::string_view part) {
  return !part.empty() && part.size() <= 96 && part.front() != '.' && part.front() != '-' &&
         std::all_of(part.begin(), part.end(), [](char c) { return is_one_of(c, "-_."); });
}

bool is_hexadecimal(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// A path that stays below the folder it is put in.
bool is_safe_path(std::string_view path) {
  if (path.size() > 512 || path.starts_with(kOwnFiles)) return false;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    const auto is_plain = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\\' && c != '\x7f'; };
    if (!std::all_of(part.begin(), part.end(), is_plain)) return false;
    if (end == path.size()) return true;
    begin = end + 1;
  }
}

const nlohmann::json& member(const nlohmann::json& object, const char* name, const std::string& label) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end())
    fail(ErrorCode::format, "{}: the answer has no {}; is this a hub?", label, name);
  return *found;
}

std::string text_member(const nlohmann::json& object, const char* name, const std::string& label) {
  const nlohmann::json& value = member(object, name, label);
  if (!value.is_string()) fail(ErrorCode::format, "{}: {} is no text", label, name);
  return value.get<std::string>();
}

HubFile read_file_entry(const nlohmann::json& entry, const std::string& label) {
  HubFile file;
  file.path = text_member(entry, "rfilename", label);
  if (!is_safe_path(file.path))
    fail(ErrorCode::format, "{}: the file name \"{}\" leads out of the folder or holds odd characters", label,
         printable(file.path));
  const nlohmann::json& size = member(entry, "size", label);
  if (!size.is_number_unsigned())
    fail(ErrorCode::format, "{}: the size of {} is no number", label, printable(file.path));
  file.size = size.get<std::uint64_t>();
  if (const auto large = entry.find("lfs"); large != entry.end() && large->is_object()) {
    file.sha256 = text_member(*large, "sha256", label);
    if (!is_hexadecimal(file.sha256, 64))
      fail(ErrorCode::format, "{}: the SHA-256 of {} is \"{}\"", label, printable(file.path), printable(file.sha256));
  } else {
    file.blob_id = text_member(entry, "blobId", label);
    if (!is_hexadecimal(file.blob_id, 40))
      fail(ErrorCode::format, "{}: the blobId of {} is \"{}\"", label, printable(file.path), printable(file.blob_id));
  }
  return file;
}

const HubFile* find_file(const HubListing& listing, std::string_view path) {
  const auto found =
      std::find_if(listing.files.begin(), listing.files.end(), [&](const HubFile& file) { return file.path == path; });
  return found == listing.files.end() ? nullptr : &*found;
}

bool in_root(const HubFile& file) {
  return file.path.find('/') == std::string::npos;
}

/// "x-0000" of x-00001-of-00003.gguf's name without number and extension; the path itself if it is no part.
std::string part_family(const std::string& path) {
  constexpr std::size_t tail = std::string_view("-00001-of-00003.gguf").size();
  if (path.size() <= tail || path.compare(path.size() - 14, 4, "-of-") != 0) return path;
  return path.substr(0, path.size() - tail) + path.substr(path.size() - 14);
}

std::vector<HubFile> named_files(const HubListing& listing, const std::vector<std::string>& wanted,
                                 const HubReference& reference) {
  std::vector<HubFile> chosen;
  for (const std::string& name : wanted) {
    if (!find_file(listing, name))
      fail(ErrorCode::not_found, "{} has no file \"{}\" at {}", reference.repository(), printable(name),
           listing.commit);
    for (const HubFile& file : listing.files)
      if (file.path == name || (name.ends_with(".gguf") && part_family(file.path) == part_family(name)))
        chosen.push_back(file);
  }
  std::sort(chosen.begin(), chosen.end(), [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  const auto same = [](const HubFile& a, const HubFile& b) { return a.path == b.path; };
  chosen.erase(std::unique(chosen.begin(), chosen.end(), same), chosen.end());
  return chosen;
}

/// What a reader of Hugging Face folders takes, and what a person should have beside it.
bool is_folder_file(const HubFile& file) {
  if (!in_root(file)) return false;
  const std::string& path = file.path;
  if (path.ends_with(".safetensors") || path == "tokenizer.model" || path.ends_with(".jinja")) return true;
  if (path.starts_with("LICENSE") || path.starts_with("NOTICE") || path == "README.md") return true;
  return path.ends_with(".json");
}

std::vector<HubFile> gguf_files(const HubListing& listing, const HubReference& reference) {
  std::vector<HubFile> chosen;
  std::vector<std::string> families;
  std::string names;
  for (const HubFile& file : listing.files) {
    if (!file.path.ends_with(".gguf")) continue;
    chosen.push_back(file);
    if (std::find(families.begin(), families.end(), part_family(file.path)) != families.end()) continue;
    families.push_back(part_family(file.path));
    names += (names.empty() ? "" : ", ") + printable(file.path);
  }
  if (families.size() > 1)
    fail(ErrorCode::usage, "{} has {} GGUF models; choose one with --file: {}", reference.repository(), families.size(),
         names);
  return chosen;
}

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

}  // namespace

HubReference HubReference::parse(std::string_view text) {
  std::string_view rest = text;
  for (const std::string_view prefix : {"https://huggingface.co/", "hf://"})
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  HubReference reference;
  if (const auto at = rest.find('@'); at != std::string_view::npos) {
    reference.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  const auto slash = rest.find('/');
  const std::string_view& revision = reference.revision;
  const bool named = !revision.empty() && revision.size() <= 128 && is_safe_path(revision) &&
                     std::all_of(revision.begin(), revision.end(), [](char c) { return is_one_of(c, "-_./"); });
  if (slash == std::string_view::npos || !is_repository_part(rest.substr(0, slash)) ||
      !is_repository_part(rest.substr(slash + 1)) || !named)
    fail(ErrorCode::usage, "\"{}\" names no repository; the form is OWNER/NAME or OWNER/NAME@REVISION",
         printable(text));
  reference.owner = rest.substr(0, slash);
  reference.name = rest.substr(slash + 1);
  return reference;
}

HubServer HubServer::from_environment() {
  HubServer server;
  if (const std::string endpoint = value_of("HF_ENDPOINT"); !endpoint.empty()) server.endpoint = endpoint;
  while (server.endpoint.ends_with("/")) server.endpoint.pop_back();
  server.token = value_of("HF_TOKEN");
  if (!std::all_of(server.token.begin(), server.token.end(), [](char c) { return c > ' ' && c < '\x7f'; }))
    fail(ErrorCode::usage, "HF_TOKEN holds white space or other characters that no token has");
  return server;
}

HubListing list_repository(const HubServer& server, const HubReference& reference) {
  HttpRequest request;
  request.url = Url::parse(fmt::format("{}/api/models/{}/revision/{}?blobs=true", server.endpoint,
                                       reference.repository(), encode_path(reference.revision)));
  request.token = server.token;
  const std::string label = fmt::format("{}/{}", server.endpoint, reference.repository());
  const nlohmann::json answer = parse_json_sorted(http_get_text(request, limits::json_bytes), label);
  HubListing listing;
  listing.commit = text_member(answer, "sha", label);
  if (!is_hexadecimal(listing.commit, 40))
    fail(ErrorCode::format, "{}: sha is \"{}\", no commit", label, printable(listing.commit));
  const nlohmann::json& files = member(answer, "siblings", label);
  if (!files.is_array() || files.size() > limits::tensors)
    fail(ErrorCode::format, "{}: siblings is no list of at most {} files", label, limits::tensors);
  for (const nlohmann::json& entry : files) listing.files.push_back(read_file_entry(entry, label));
  return listing;
}

HttpRequest file_request(const HubServer& server, const HubReference& reference, const std::string& commit,
                         const std::string& path) {
  HttpRequest request;
  request.url = Url::parse(
      fmt::format("{}/{}/resolve/{}/{}", server.endpoint, reference.repository(), commit, encode_path(path)));
  request.token = server.token;
  return request;
}

std::vector<HubFile> choose_files(const HubListing& listing, const std::vector<std::string>& wanted,
                                  const HubReference& reference) {
  if (!wanted.empty()) return named_files(listing, wanted, reference);
  std::vector<HubFile> chosen;
  if (find_file(listing, "manifest.json")) {
    std::copy_if(listing.files.begin(), listing.files.end(), std::back_inserter(chosen), in_root);
    return chosen;
  }
  const bool weights = std::any_of(listing.files.begin(), listing.files.end(), [](const HubFile& file) {
    return in_root(file) && file.path.ends_with(".safetensors");
  });
  if (find_file(listing, "config.json") && weights) {
    std::copy_if(listing.files.begin(), listing.files.end(), std::back_inserter(chosen), is_folder_file);
    return chosen;
  }
  chosen = gguf_files(listing, reference);
  if (chosen.empty())
    fail(ErrorCode::unsupported, "{} has no artifact, no safetensors with config.json and no GGUF file at {}",
         reference.repository(), listing.commit);
  return chosen;
}

}  // namespace candor
