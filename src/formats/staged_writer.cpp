#include "formats/staged_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/sha256.h"

namespace candor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kJournal = "journal.jsonl";

[[noreturn]] void fail_io(const fs::path& path, std::string_view what) {
  const int error = errno;
  fail(error == ENOSPC || error == EDQUOT ? ErrorCode::resource : ErrorCode::io, "{}: cannot be {}: {}", path.string(),
       what, std::strerror(error));
}

void write_at(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_io(path, "written");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
}

/// A descriptor that closes itself. Files are opened for each access: a model may have more shards than a process may
/// have open files.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (value_ < 0) fail_io(path, "opened");
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_;
};

void sync_path(const fs::path& path) {
  const Descriptor descriptor(path, O_RDONLY);
  if (::fsync(descriptor.get()) != 0) fail_io(path, "synced");
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// What tells one output from another: the caller's key, and every file and tensor of the layout.
std::string heading_of(const OutputLayout& layout, std::string_view key) {
  Sha256 hash;
  hash.update(key);
  for (const OutputFile& file : layout.files) {
    hash.update(fmt::format("\nfile {} {}\n", file.name, file.size));
    hash.update(file.header);
  }
  for (const TensorInfo& tensor : layout.tensors)
    hash.update(fmt::format("\ntensor {} {} {} {}", tensor.name, to_string(tensor.encoding), print_shape(tensor.shape),
                            tensor.bytes));
  return Json{{"output", hash.hex()}}.dump();
}

void check_space(const fs::path& target, std::uint64_t needed) {
  std::error_code ignored;
  const fs::space_info space = fs::space(parent_of(target), ignored);
  if (!ignored && space.available < needed)
    fail(ErrorCode::resource, "{}: needs {} bytes, but the disk has {} left; free some, or write elsewhere",
         target.string(), needed, space.available);
}

}  // namespace

StagedWriter::StagedWriter(fs::path target, OutputLayout layout, std::string_view key)
    : target_(std::move(target)), layout_(std::move(layout)) {
  if (target_.filename().empty()) target_ = target_.parent_path();
  staging_ = target_.string() + ".partial";
  if (fs::exists(target_))
    fail(ErrorCode::usage, "{}: exists already; remove it or choose another name", target_.string());
  std::error_code error;
  if (!fs::is_directory(parent_of(target_), error))
    fail(ErrorCode::not_found, "{}: the folder {} does not exist; create it, or write elsewhere", target_.string(),
         parent_of(target_).string());
  fs::create_directory(staging_, error);
  if (error) fail(ErrorCode::io, "{}: cannot be created: {}", staging_.string(), error.message());
  start(heading_of(layout_, key));
}

StagedWriter::~StagedWriter() {
  if (journal_ >= 0) ::close(journal_);
}

void StagedWriter::start(const std::string& heading) {
  const fs::path path = staging_ / kJournal;
  journal_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (journal_ < 0) fail_io(path, "created");
  if (::flock(journal_, LOCK_EX | LOCK_NB) != 0)
    fail(ErrorCode::usage, "{}: another process is writing it; wait for it or choose another name", target_.string());
  const std::string journal = read_file(path, limits::json_bytes);
  const bool same = journal.starts_with(heading + "\n");
  // Only tensors are taken over. Everything else is written anew, and half-written temporary files belong to nobody.
  const auto keeps = [&](const fs::path& name) {
    const auto is_it = [&](const OutputFile& file) { return file.name == name; };
    return name == kJournal || (same && std::any_of(layout_.files.begin(), layout_.files.end(), is_it));
  };
  for (const fs::directory_entry& entry : fs::directory_iterator(staging_))
    if (!keeps(entry.path().filename())) fs::remove_all(entry.path());
  if (!same) {
    if (::ftruncate(journal_, 0) != 0) fail_io(path, "emptied");
    check_space(target_, layout_.total_bytes());
    append_journal(heading);
  }
  create_files();
  if (same) resume();
}

/// Makes every file as large as it will be, with its header. What an interrupted run wrote stays.
void StagedWriter::create_files() const {
  for (std::size_t i = 0; i < layout_.files.size(); ++i) {
    const fs::path path = staged_path(i);
    const Descriptor descriptor(path, O_WRONLY | O_CREAT);
    if (::ftruncate(descriptor.get(), static_cast<off_t>(layout_.files[i].size)) != 0)
      fail_io(path, "made as large as it must be");
    write_at(descriptor.get(), std::as_bytes(std::span(layout_.files[i].header)), 0, path);
  }
}

/// Takes over the journal's tensors up to the first whose bytes are not on the disk as recorded; cuts the rest off.
void StagedWriter::resume() {
  const fs::path path = staging_ / kJournal;
  const std::string journal = read_file(path, limits::json_bytes);
  std::size_t begin = journal.find('\n') + 1;
  while (written_.size() < layout_.tensors.size()) {
    const std::size_t end = journal.find('\n', begin);
    if (end == std::string::npos) break;  // nothing more, or a line that was cut
    try {
      const Json line = parse_json(std::string_view(journal).substr(begin, end - begin), path.string());
      WrittenTensor tensor{line.at("sha256").get<std::string>(), line.at("note")};
      if (!is_intact(layout_.tensors[written_.size()], tensor.sha256)) break;
      written_.push_back(std::move(tensor));
    } catch (const Error&) {
      break;
    } catch (const Json::exception&) {
      break;
    }
    begin = end + 1;
  }
  if (::ftruncate(journal_, static_cast<off_t>(begin)) != 0) fail_io(path, "cut");
}

bool StagedWriter::is_intact(const TensorInfo& tensor, const std::string& digest) const {
  Sha256 hash;
  for (const TensorExtent& extent : tensor.extents)
    if (extent.size > 0) hash.update(MappedFile(staged_path(extent.file)).bytes().subspan(extent.offset, extent.size));
  return hash.hex() == digest;
}

void StagedWriter::append_journal(const std::string& line) {
  const std::string text = line + "\n";
  const off_t end = ::lseek(journal_, 0, SEEK_END);
  if (end < 0) fail_io(staging_ / kJournal, "written");
  write_at(journal_, std::as_bytes(std::span(text)), static_cast<std::uint64_t>(end), staging_ / kJournal);
}

void StagedWriter::write(std::span<const std::byte> bytes, Json note) {
  if (written_.size() == layout_.tensors.size())
    fail(ErrorCode::internal, "{}: more tensors than the layout has", target_.string());
  const TensorInfo& tensor = layout_.tensors[written_.size()];
  if (bytes.size() != tensor.bytes)
    fail(ErrorCode::internal, "tensor \"{}\" has {} bytes, but the layout says {}", printable(tensor.name),
         bytes.size(), tensor.bytes);
  std::span<const std::byte> rest = bytes;
  for (const TensorExtent& extent : tensor.extents) {
    const fs::path path = staged_path(extent.file);
    write_at(Descriptor(path, O_WRONLY).get(), rest.first(extent.size), extent.offset, path);
    rest = rest.subspan(extent.size);
  }
  WrittenTensor done{sha256_hex(bytes), std::move(note)};
  append_journal(Json{{"tensor", tensor.name}, {"sha256", done.sha256}, {"note", done.note}}.dump());
  written_.push_back(std::move(done));
}

fs::path StagedWriter::staged_path(std::size_t file) const {
  return staging_ / layout_.files[file].name;
}

void StagedWriter::add_file(std::string_view name, std::string_view content) {
  write_file_atomically(staging_ / name, content);
}

void StagedWriter::finish_staging() {
  if (written_.size() != layout_.tensors.size())
    fail(ErrorCode::internal, "{}: {} of {} tensors were written", target_.string(), written_.size(),
         layout_.tensors.size());
  for (std::size_t i = 0; i < layout_.files.size(); ++i) sync_path(staged_path(i));
}

void StagedWriter::commit_folder() {
  finish_staging();
  if (::unlink((staging_ / kJournal).c_str()) != 0) fail_io(staging_ / kJournal, "removed");
  sync_path(staging_);
  if (::rename(staging_.c_str(), target_.c_str()) != 0) fail_io(target_, "renamed into place");
  sync_path(parent_of(target_));
}

void StagedWriter::commit_file() {
  finish_staging();
  if (::rename(staged_path(0).c_str(), target_.c_str()) != 0) fail_io(target_, "renamed into place");
  sync_path(parent_of(target_));
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

}  // namespace candor
