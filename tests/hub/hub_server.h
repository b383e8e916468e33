// A hub on this machine, with faults to order: what Hugging Face's API answers, for one repository.
#pragma once

#include <httplib.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/sha256.h"

namespace candor {

inline const std::string kCommit(40, 'c');

class HubOnThisMachine {
 public:
  explicit HubOnThisMachine(std::unique_ptr<httplib::Server> server = std::make_unique<httplib::Server>(),
                            std::string scheme = "http")
      : server_(std::move(server)), scheme_(std::move(scheme)) {
    server_->Get(R"(/api/models/owner/model/revision/(.+))",
                 [this](const httplib::Request& request, httplib::Response& response) { list(request, response); });
    server_->Get(R"(/owner/model/resolve/(\w+)/(.+))",
                 [this](const httplib::Request& request, httplib::Response& response) { send(request, response); });
    server_->Get("/elsewhere", [this](const httplib::Request& request, httplib::Response& response) {
      elsewhere_token = request.get_header_value("Authorization");
      response.set_content(files["config.json"], "application/json");
    });
    port_ = server_->bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::yield();
  }
  ~HubOnThisMachine() {
    server_->stop();
    thread_.join();
  }

  [[nodiscard]] std::string address(const std::string& host = "127.0.0.1") const {
    return scheme_ + "://" + host + ":" + std::to_string(port_);
  }

  std::map<std::string, std::string> files;     ///< by path
  std::map<std::string, std::string> blob_ids;  ///< files whose Git name is stated in place of SHA-256
  std::string commit = kCommit;
  std::string wanted_token;                 ///< empty: anyone may read
  std::string redirect;                     ///< where config.json leads, if anywhere
  std::atomic<std::size_t> break_after{0};  ///< bytes after which a connection ends, once; 0: never
  bool knows_ranges = true;
  bool sends_other_bytes = false;
  std::atomic<std::size_t> sent{0};  ///< bytes of files
  std::string elsewhere_token;
  std::string asked_revision;

 private:
  bool refuse(const httplib::Request& request, httplib::Response& response) const {
    if (wanted_token.empty() || request.get_header_value("Authorization") == "Bearer " + wanted_token) return false;
    response.status = 401;
    return true;
  }

  void list(const httplib::Request& request, httplib::Response& response) {
    if (refuse(request, response)) return;
    asked_revision = request.matches[1];
    Json siblings = Json::array();
    for (const auto& [path, content] : files) {
      Json entry{{"rfilename", path}, {"size", content.size()}};
      if (blob_ids.contains(path)) {
        entry["blobId"] = blob_ids[path];
      } else {
        entry["lfs"] = {{"sha256", sha256_hex(content)}, {"size", content.size()}};
      }
      siblings.push_back(std::move(entry));
    }
    response.set_content(Json{{"sha", commit}, {"siblings", siblings}}.dump(), "application/json");
  }

  void send(const httplib::Request& request, httplib::Response& response) {
    if (refuse(request, response)) return;
    const std::string path = request.matches[2];
    if (request.matches[1] != commit || !files.contains(path)) {
      response.status = 404;
      return;
    }
    if (path == "config.json" && !redirect.empty()) {
      response.set_redirect(redirect);
      return;
    }
    std::string content = files[path];
    if (sends_other_bytes) content[content.size() / 2] ^= 1;
    const std::size_t size = content.size();
    const bool partial = knows_ranges && request.has_header("Range");
    const std::size_t cut = size > break_after ? break_after.exchange(0) : 0;
    if (!partial) const_cast<httplib::Request&>(request).ranges.clear();  // a server that knows no ranges
    response.set_content_provider(size, "application/octet-stream",
                                  [this, content = std::move(content), cut, already = std::size_t{0}](
                                      std::size_t offset, std::size_t length, httplib::DataSink& sink) mutable {
                                    std::size_t count = std::min<std::size_t>(length, 1000);
                                    if (cut != 0) {
                                      if (already >= cut) return false;
                                      count = std::min(count, cut - already);
                                    }
                                    sink.write(content.data() + offset, count);
                                    already += count;
                                    sent += count;
                                    return true;
                                  });
  }

  std::unique_ptr<httplib::Server> server_;
  std::string scheme_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace candor
