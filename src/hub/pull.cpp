#include "hub/pull.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = ".candor-pull.json";
constexpr const char* kLock = ".candor-lock";
constexpr int kAttempts = 5;  ///< without a byte of progress between them

[[noreturn]] void fail_errno(const fs::path& path, std::string_view what) {
  const int error = errno;
  fail(error == ENOSPC || error == EDQUOT ? ErrorCode::resource : ErrorCode::io, "{}: cannot be {}: {}", path.string(),
       what, std::strerror(error));
}

/// The digest that the hub states for a file: SHA-256 of its content, or Git's name of it.
class FileDigest {
 public:
  explicit FileDigest(const HubFile& file) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    const bool is_blob = file.sha256.empty();
    if (!context_ || EVP_DigestInit_ex(context_.get(), is_blob ? EVP_sha1() : EVP_sha256(), nullptr) != 1)
      fail(ErrorCode::internal, "OpenSSL gives no digest");
    if (is_blob) update(fmt::format("blob {}", file.size) + '\0');
  }

  void update(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

  [[nodiscard]] std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    std::string out;
    for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", digest[i]);
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

const std::string& stated_digest(const HubFile& file) {
  return file.sha256.empty() ? file.blob_id : file.sha256;
}

/// An open file that is appended to.
class PartFile {
 public:
  explicit PartFile(fs::path path) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail_errno(path_, "created");
  }
  ~PartFile() { ::close(descriptor_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  [[nodiscard]] std::uint64_t size() const {
    const off_t end = ::lseek(descriptor_, 0, SEEK_END);
    if (end < 0) fail_errno(path_, "measured");
    return static_cast<std::uint64_t>(end);
  }
  void cut(std::uint64_t size) {
    if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) fail_errno(path_, "cut");
  }
  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail_errno(path_, "written");
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
  }
  void sync() const {
    if (::fsync(descriptor_) != 0) fail_errno(path_, "synced");
  }
  [[nodiscard]] bool lock() const { return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0; }

 private:
  fs::path path_;
  int descriptor_ = -1;
};

std::string digest_of(const fs::path& path, const HubFile& file) {
  FileDigest digest(file);
  if (file.size > 0) {
    const MappedFile map(path);
    digest.update({reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()});
  }
  return digest.hex();
}

Json record_of(const PullOptions& options, const std::string& commit, const std::vector<HubFile>& files) {
  Json list = Json::array();
  for (const HubFile& file : files)
    list.push_back(
        {{"path", file.path}, {"size", file.size}, {file.sha256.empty() ? "gitBlob" : "sha256", stated_digest(file)}});
  return {{"repository", options.reference.repository()},
          {"revision", options.reference.revision},
          {"commit", commit},
          {"endpoint", options.server.endpoint},
          {"files", std::move(list)}};
}

/// The record without what may differ between pulls of the same files.
Json identity(const Json& record) {
  Json out = Json::object();
  for (const char* key : {"repository", "commit", "files"})
    out[key] = record.is_object() ? record.value(key, Json()) : Json();
  return out;
}

std::optional<Json> read_record(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / kRecord, ignored)) return std::nullopt;
  return parse_json(read_file(folder / kRecord, limits::json_bytes), (folder / kRecord).string());
}

class Pull {
 public:
  Pull(const PullOptions& options, const std::function<void(std::uint64_t)>& progress)
      : options_(options), progress_(progress), staging_(options.folder.string() + ".partial") {}

  PullResult run(const std::function<void(std::uint64_t)>& started) {
    const HubListing listing = list_repository(options_.server, options_.reference);
    result_.commit = listing.commit;
    result_.files = choose_files(listing, options_.files, options_.reference);
    for (const HubFile& file : result_.files) result_.bytes += file.size;
    const Json record = record_of(options_, listing.commit, result_.files);
    std::error_code ignored;
    if (fs::exists(options_.folder, ignored)) {
      check_present(record);
      return std::move(result_);
    }
    started(result_.bytes);
    stage(record);
    for (const HubFile& file : result_.files) fetch(file);
    commit();
    return std::move(result_);
  }

 private:
  /// The folder is this pull already, or something that must not be touched.
  void check_present(const Json& record) {
    const auto present = read_record(options_.folder);
    if (!present || identity(*present) != identity(record))
      fail(ErrorCode::usage, "{}: exists already and holds {}; remove it or choose another folder",
           options_.folder.string(),
           present ? "commit " + printable(present->value("commit", "unknown")) + " of " +
                         printable(present->value("repository", "another repository"))
                   : "something else");
    for (const HubFile& file : result_.files) {
      const fs::path path = options_.folder / file.path;
      std::error_code error;
      if (fs::file_size(path, error) != file.size || error || digest_of(path, file) != stated_digest(file))
        fail(ErrorCode::integrity, "{}: is not as it was pulled; remove the folder and pull again", path.string());
    }
    result_.was_there = true;
  }

  void stage(const Json& record) {
    std::error_code error;
    fs::create_directories(staging_, error);
    if (error) fail(ErrorCode::io, "{}: cannot be created: {}", staging_.string(), error.message());
    lock_ = std::make_unique<PartFile>(staging_ / kLock);
    if (!lock_->lock())
      fail(ErrorCode::usage, "{}: another process is pulling it; wait for it", options_.folder.string());
    const auto begun = read_record(staging_);
    if (!begun || identity(*begun) != identity(record)) {
      for (const auto& entry : fs::directory_iterator(staging_))
        if (entry.path().filename() != kLock) fs::remove_all(entry.path());
      write_file_atomically(staging_ / kRecord, to_js_json(record, 2) + "\n");
    }
    check_disk();
  }

  void check_disk() const {
    std::uint64_t there = 0;
    for (const HubFile& file : result_.files) {
      std::error_code error;
      const std::uint64_t size = fs::file_size(part_path(file), error);
      if (!error) there += std::min(size, file.size);
    }
    std::error_code ignored;
    const fs::space_info space = fs::space(staging_, ignored);
    if (!ignored && space.available < result_.bytes - there)
      fail(ErrorCode::resource, "{}: needs {} more bytes, but the disk has {} left", options_.folder.string(),
           result_.bytes - there, space.available);
  }

  [[nodiscard]] fs::path part_path(const HubFile& file) const { return staging_ / file.path; }

  /// Fetches what of the file is not there yet, and checks all of it.
  void fetch(const HubFile& file) {
    fs::create_directories(part_path(file).parent_path());
    PartFile part(part_path(file));
    if (part.size() > file.size) part.cut(0);
    int attempts = 0;
    while (part.size() < file.size) {
      const std::uint64_t before = part.size();
      try {
        fetch_rest(file, part);
      } catch (const Error& error) {
        attempts = part.size() > before ? 0 : attempts + 1;
        if (error.code() != ErrorCode::io || attempts >= kAttempts) throw;
      }
    }
    part.sync();
    const std::string found = digest_of(part_path(file), file);
    if (found != stated_digest(file)) {
      part.cut(0);
      fail(ErrorCode::integrity, "{}: the {} is {}, but the hub states {}; the download was thrown away: pull again",
           file.path, file.sha256.empty() ? "Git blob" : "SHA-256", found, stated_digest(file));
    }
    done_ += file.size;
    progress_(done_);
  }

  void fetch_rest(const HubFile& file, PartFile& part) {
    HttpRequest request = file_request(options_.server, options_.reference, result_.commit, file.path);
    request.first_byte = part.size();
    std::uint64_t position = 0;
    http_get(
        request,
        [&](const HttpResponse& response) {
          if (response.first_byte != 0 && response.first_byte != request.first_byte)
            fail(ErrorCode::format, "{}: the server sent bytes from {} where {} was asked", file.path,
                 response.first_byte, request.first_byte);
          position = response.first_byte;
          part.cut(position);  // all of it again, from a server that knows no ranges
        },
        [&](std::string_view bytes) {
          if (bytes.size() > file.size - position)
            fail(ErrorCode::integrity, "{}: the server sends more than the {} bytes that the hub states", file.path,
                 file.size);
          part.append(bytes);
          position += bytes.size();
          result_.downloaded += bytes.size();
          progress_(done_ + position);
        });
    if (position < file.size)
      fail(ErrorCode::io, "{}: the connection ended after {} of {} bytes; pull again to go on", file.path, position,
           file.size);
  }

  void commit() {
    fs::remove(staging_ / kLock);
    std::error_code error;
    fs::rename(staging_, options_.folder, error);
    if (error) fail(ErrorCode::io, "{}: cannot be renamed into place: {}", options_.folder.string(), error.message());
  }

  const PullOptions& options_;
  const std::function<void(std::uint64_t)>& progress_;
  fs::path staging_;
  std::unique_ptr<PartFile> lock_;
  PullResult result_;
  std::uint64_t done_ = 0;  ///< bytes of the files that are complete
};

}  // namespace

PullResult pull(const PullOptions& options, const std::function<void(std::uint64_t)>& started,
                const std::function<void(std::uint64_t)>& progress) {
  PullOptions cleaned = options;
  if (cleaned.folder.filename().empty()) cleaned.folder = cleaned.folder.parent_path();  // a slash at the end
  return Pull(cleaned, progress).run(started);
}

}  // namespace candor
