#include "hub/http.h"

#include <httplib.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

#include "base/error.h"

namespace candor {
namespace {

constexpr int kRedirects = 5;
constexpr time_t kTimeoutSeconds = 30;

bool is_this_machine(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Where a Location header leads: an absolute URL, or a path at the same origin.
Url redirected(const Url& from, const std::string& location) {
  if (location.starts_with("/") && !location.starts_with("//")) return {from.origin, location};
  return Url::parse(location);
}

/// The first byte of "bytes 100-199/200".
std::optional<std::uint64_t> range_begin(const std::string& content_range) {
  constexpr std::string_view kUnit = "bytes ";
  if (!content_range.starts_with(kUnit)) return std::nullopt;
  std::uint64_t first = 0;
  const char* begin = content_range.data() + kUnit.size();
  const auto [end, error] = std::from_chars(begin, content_range.data() + content_range.size(), first);
  if (error != std::errc{} || *end != '-') return std::nullopt;
  return first;
}

void check_status(const HttpRequest& request, const Url& url, int status) {
  if (status == 200 || status == 206) return;
  const std::string where = url.origin + url.path.substr(0, url.path.find('?'));  // queries may hold signatures
  if (status == 404) fail(ErrorCode::not_found, "{}: the server has no such file or repository (404)", where);
  if (status == 401 || status == 403)
    fail(ErrorCode::usage, "{}: access is refused ({}); {}", where, status,
         request.token.empty() ? "if the repository is private or gated, set HF_TOKEN"
                               : "the token in HF_TOKEN does not open it, or its terms were not accepted");
  fail(ErrorCode::io, "{}: the server answered with status {}", where, status);
}

/// What kept a request from being answered, and what to do.
std::string reason_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "cannot be reached: there is no network, no such host, or nothing listens there; check the connection, or "
             "name another hub with HF_ENDPOINT";
    case httplib::Error::ConnectionTimeout:
      return fmt::format("does not answer within {} seconds; try again later", kTimeoutSeconds);
    case httplib::Error::SSLConnection:
    case httplib::Error::SSLLoadingCerts:
    case httplib::Error::SSLServerVerification:
      return "no trusted encrypted connection can be made; check the clock, the ca-certificates of this machine, and "
             "whether a proxy stands between";
    case httplib::Error::Read:
    case httplib::Error::Write:
      return "the connection broke; try again, the download goes on where it stopped";
    default:
      return fmt::format("the request failed ({}); try again, the download goes on where it stopped",
                         httplib::to_string(error));
  }
}

/// One exchange; the target of a redirect, or nothing when the body has been received.
std::optional<std::string> exchange(const HttpRequest& request, const Url& url, HttpResponse& response,
                                    const std::function<void(const HttpResponse&)>& begin,
                                    const std::function<void(std::string_view)>& receive) {
  httplib::Client client(url.origin);
  client.set_connection_timeout(kTimeoutSeconds);
  client.set_read_timeout(kTimeoutSeconds);
  client.set_follow_location(false);
  client.set_url_encode(false);
  client.enable_server_certificate_verification(true);
  httplib::Headers headers{{"Accept-Encoding", "identity"}, {"User-Agent", "candor"}};
  if (!request.token.empty() && url.origin == request.url.origin)
    headers.emplace("Authorization", "Bearer " + request.token);
  if (request.first_byte > 0) headers.emplace("Range", fmt::format("bytes={}-", request.first_byte));

  std::exception_ptr thrown;  // the library has no way to carry one through
  std::optional<std::string> location;
  const auto guarded = [&](const auto& action) {
    try {
      action();
      return true;
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  };
  const auto on_response = [&](const httplib::Response& head) {
    return guarded([&] {
      if (is_redirect(head.status)) {
        location = head.get_header_value("Location");
        return;
      }
      check_status(request, url, head.status);
      response.status = head.status;
      response.first_byte = head.status == 206 ? range_begin(head.get_header_value("Content-Range")).value_or(0) : 0;
      begin(response);
    });
  };
  const auto on_body = [&](const char* data, std::size_t size) {
    if (location) return true;
    return guarded([&] { receive({data, size}); });
  };
  const httplib::Result result = client.Get(url.path, headers, on_response, on_body);
  if (thrown) std::rethrow_exception(thrown);
  if (!result) fail(ErrorCode::io, "{}: {}", url.origin, reason_of(result.error()));
  return location;
}

}  // namespace

Url Url::parse(std::string_view text) {
  const bool secure = text.starts_with("https://");
  if (!secure && !text.starts_with("http://"))
    fail(ErrorCode::usage, "\"{}\" is no address that starts with https://", printable(text));
  const std::size_t host_begin = text.find("://") + 3;
  const std::size_t path_begin = std::min(text.find_first_of("/?", host_begin), text.size());
  const std::string_view authority = text.substr(host_begin, path_begin - host_begin);
  std::string_view host = authority;
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos && !host.ends_with(']'))
    host = host.substr(0, colon);
  const bool clean = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (host.empty() || !clean || authority.find('@') != std::string_view::npos)
    fail(ErrorCode::usage, "\"{}\" is no address of a server", printable(text));
  if (!secure && !is_this_machine(host))
    fail(ErrorCode::usage, "\"{}\" is not encrypted; http:// is for this machine only, others need https://",
         printable(text));
  Url url;
  url.origin = text.substr(0, path_begin);
  const std::string_view rest = text.substr(path_begin);
  if (rest.starts_with('/')) url.path.clear();  // else it is "/" already
  url.path += rest;
  return url;
}

HttpResponse http_get(const HttpRequest& request, const std::function<void(const HttpResponse&)>& begin,
                      const std::function<void(std::string_view)>& receive) {
  Url url = request.url;
  HttpResponse response;
  for (int hop = 0; hop <= kRedirects; ++hop) {
    const auto location = exchange(request, url, response, begin, receive);
    if (!location) return response;
    if (location->empty()) fail(ErrorCode::io, "{}: a redirect without an address", url.origin);
    const Url next = redirected(url, *location);
    if (url.origin.starts_with("https:") && !next.origin.starts_with("https:"))
      fail(ErrorCode::io, "{}: leads to {}, which is not encrypted", url.origin, next.origin);
    url = next;
  }
  fail(ErrorCode::io, "{}: more than {} redirects", request.url.origin, kRedirects);
}

std::string http_get_text(const HttpRequest& request, std::uint64_t limit) {
  std::string text;
  (void)http_get(
      request, [](const HttpResponse&) {},
      [&](std::string_view piece) {
        if (piece.size() > limit - text.size())
          fail(ErrorCode::format, "{}: the answer is longer than {} bytes", request.url.origin, limit);
        text += piece;
      });
  return text;
}

std::string encode_path(std::string_view path) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string out;
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace candor
