#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/map_fault.h"

namespace candor {
namespace {

/// Maps that a SIGBUS may fall into. The handler may only read it, so it is a fixed table of atomics.
struct MapEntry {
  std::atomic<const std::byte*> begin{nullptr};
  std::atomic<std::size_t> size{0};
  std::array<char, 512> path{};
};
constexpr std::size_t kMapEntries = 1024;
std::array<MapEntry, kMapEntries>& map_table() {
  static std::array<MapEntry, kMapEntries> table;
  return table;
}

std::atomic<bool> faults_as_json{false};

/// A path as it stands in the message: in JSON escaped, and if it is then too long its last part, or nothing.
std::string path_in_message(const std::filesystem::path& path) {
  if (!faults_as_json) return path.string();
  for (const std::string& name : {path.string(), path.filename().string()}) {
    const std::string quoted = to_js_json(Json(printable(name, name.size())));
    if (quoted.size() < sizeof(MapEntry::path)) return quoted.substr(1, quoted.size() - 2);
  }
  return "a file";
}

void register_map(const std::byte* begin, std::size_t size, const std::string& path) {
  for (auto& entry : map_table()) {
    std::size_t free = 0;
    if (!entry.size.compare_exchange_strong(free, size)) continue;
    std::strncpy(entry.path.data(), path.c_str(), entry.path.size() - 1);
    entry.begin.store(begin, std::memory_order_release);
    return;
  }
  // A full table only means that a fault in this file is reported without its name.
}

void unregister_map(const std::byte* begin) {
  for (auto& entry : map_table()) {
    if (entry.begin.load() != begin) continue;
    entry.begin.store(nullptr);
    entry.size.store(0);
    return;
  }
}

/// Says in one write which file it was, and ends the process. Other threads that meet the same wait for that.
[[noreturn]] void end_by_map_fault(const char* path) {
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  while (said.test_and_set()) ::pause();
  const bool json = faults_as_json;
  const std::string_view before = json ? R"({"error":{"code":"io","message":")" : "\ncandor: ";
  constexpr std::string_view kWhat =
      ": the file became shorter or unreadable while it was in use; restore it and start again";
  const std::string_view after = json ? "\"}}\n" : "\n";
  const auto part = [](const char* text, std::size_t size) { return iovec{const_cast<char*>(text), size}; };
  const std::array<iovec, 4> parts{part(before.data(), before.size()), part(path, std::strlen(path)),
                                   part(kWhat.data(), kWhat.size()), part(after.data(), after.size())};
  (void)!::writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size()));
  _exit(exit_status(ErrorCode::io));
}

void on_map_fault(int, siginfo_t* info, void*) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  for (const auto& entry : map_table()) {
    const std::byte* begin = entry.begin.load(std::memory_order_acquire);
    if (begin && address >= begin && address < begin + entry.size.load()) end_by_map_fault(entry.path.data());
  }
  std::signal(SIGBUS, SIG_DFL);
  std::raise(SIGBUS);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Descriptor open_for_reading(const std::filesystem::path& path, struct stat& status) {
  // Without O_NONBLOCK, a pipe that nobody writes to would be waited for before it could be refused.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    const int error = errno;
    fail(error == ENOENT || error == ENOTDIR ? ErrorCode::not_found : ErrorCode::io, "{}: {}", path.string(),
         std::strerror(error));
  }
  if (::fstat(file.get(), &status) != 0) fail(ErrorCode::io, "{}: {}", path.string(), std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(ErrorCode::format, "{}: is a directory, not a file", path.string());
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::format, "{}: is not a regular file", path.string());
  return file;
}

}  // namespace

void report_map_faults_as_json() {
  faults_as_json = true;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  const Descriptor file = open_for_reading(path, status);
  if (status.st_size == 0) fail(ErrorCode::format, "{}: the file is empty", path.string());
  size_ = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    fail(error == ENOMEM ? ErrorCode::resource : ErrorCode::io, "{}: cannot be mapped: {}", path.string(),
         std::strerror(error));
  }
  data_ = static_cast<const std::byte*>(data);
  register_map(data_, size_, path_in_message(path));
}

MappedFile::~MappedFile() {
  release();
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void MappedFile::release() noexcept {
  if (!data_) return;
  unregister_map(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
}

void MappedFile::drop_pages(std::uint64_t offset, std::uint64_t size) const {
  if (offset > size_ || size > size_ - offset)
    fail(ErrorCode::internal, "{}: {} bytes from offset {} are outside its {}", path_.string(), size, offset, size_);
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = (offset + page - 1) / page * page;
  const std::uint64_t end = (offset + size) / page * page;
  // Only a hint: where it is refused, memory is used longer.
  if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

void install_map_fault_handler() {
  map_table();  // constructed before a handler can need it
  struct sigaction action {};
  action.sa_sigaction = on_map_fault;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

std::string read_file(const std::filesystem::path& path, std::uint64_t limit) {
  struct stat status {};
  const Descriptor file = open_for_reading(path, status);
  if (static_cast<std::uint64_t>(status.st_size) > limit)
    fail(ErrorCode::format, "{}: {} bytes, more than the limit of {}", path.string(), status.st_size, limit);
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorCode::io, "{}: {}", path.string(), std::strerror(errno));
    if (got == 0) fail(ErrorCode::io, "{}: ended after {} of {} bytes", path.string(), done, content.size());
    done += static_cast<std::size_t>(got);
  }
  return content;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  // Renaming over a device, a pipe or a link would put a file in its place.
  struct stat existing = {};
  if (::lstat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    fail(ErrorCode::io, "{}: is not a regular file, and would be replaced by one; give another name", path.string());
  const std::string temporary = path.string() + ".tmp" + std::to_string(::getpid());
  const auto give_up = [&](const char* what) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail(ErrorCode::io, "{}: cannot be {}: {}", path.string(), what, std::strerror(error));
  };
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) give_up("created");
    std::size_t done = 0;
    while (done < content.size()) {
      const ssize_t put = ::write(file.get(), content.data() + done, content.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) give_up("written");
      done += static_cast<std::size_t>(put);
    }
    if (::fsync(file.get()) != 0) give_up("synced");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) give_up("renamed into place");
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
}

}  // namespace candor
