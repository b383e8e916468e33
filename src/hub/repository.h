// A repository of models on the hub: how it is named, which files it has at which commit, and which of them make a
// model. The API is Hugging Face's (huggingface.co/docs/hub/api). Not a goal: searching, uploading, data sets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hub/http.h"

namespace candor {

/// What the names of this program's own files in a pulled folder begin with.
inline constexpr std::string_view kOwnFiles = ".candor-";

/// OWNER/NAME[@REVISION], or the address of the repository's page.
struct HubReference {
  std::string owner;
  std::string name;
  std::string revision = "main";  ///< a branch, tag or commit

  [[nodiscard]] std::string repository() const { return owner + "/" + name; }
  /// Throws Error(usage), showing the form.
  [[nodiscard]] static HubReference parse(std::string_view text);
};

struct HubServer {
  std::string endpoint = "https://huggingface.co";
  std::string token;

  /// HF_ENDPOINT and HF_TOKEN where they are set.
  [[nodiscard]] static HubServer from_environment();
};

struct HubFile {
  std::string path;  ///< below the repository's root; checked: relative, without "..", no odd characters
  std::uint64_t size = 0;
  std::string sha256;   ///< of large files; else empty
  std::string blob_id;  ///< of files without sha256: Git's SHA-1 over "blob SIZE\0" and the content
};

struct HubListing {
  std::string commit;  ///< 40 hexadecimal digits: what the revision was when it was asked
  std::vector<HubFile> files;
};

/// Throws as http_get, and Error(format) for an answer that is not such a listing.
[[nodiscard]] HubListing list_repository(const HubServer& server, const HubReference& reference);
[[nodiscard]] HttpRequest file_request(const HubServer& server, const HubReference& reference,
                                       const std::string& commit, const std::string& path);

/// The files that make one model: those named in `wanted` (all parts of a split GGUF file), or else an artifact's, a
/// Hugging Face folder's, or the only GGUF file. Throws Error(not_found) for a name that is not there, Error(usage) if
/// several GGUF files could be meant, Error(unsupported) if nothing can be read.
[[nodiscard]] std::vector<HubFile> choose_files(const HubListing& listing, const std::vector<std::string>& wanted,
                                                const HubReference& reference);

}  // namespace candor
