// HTTPS downloads for the hub: one GET at a time, redirects followed by rules, bodies streamed. Plain HTTP is for this
// machine only, and a token goes to no host but the one it is for. Not a goal: a general HTTP client; connections are
// cpp-httplib's, certificates OpenSSL's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace candor {

/// scheme://host[:port] and the rest.
struct Url {
  std::string origin;
  std::string path = "/";

  /// Throws Error(usage): no http or https URL, user names in it, or http to another machine.
  [[nodiscard]] static Url parse(std::string_view text);
};

struct HttpRequest {
  Url url;
  std::string token;             ///< sent as a bearer token to url.origin alone; empty: none
  std::uint64_t first_byte = 0;  ///< asks for the rest from here
};

struct HttpResponse {
  int status = 0;
  std::uint64_t first_byte = 0;  ///< where the body begins in the file: 0 if the server sends all of it again
};

/// Streams the body of the last response to `receive` (in pieces; false stops, as an error). `begin` sees the response
/// before its body and may throw. Follows at most 5 redirects. Throws Error(io) if the connection fails or ends early,
/// Error(not_found) for 404, Error(usage) for 401 and 403, Error(io) for another status than 200 and 206, and what
/// `begin` and `receive` throw.
HttpResponse http_get(const HttpRequest& request, const std::function<void(const HttpResponse&)>& begin,
                      const std::function<void(std::string_view)>& receive);

/// The whole body as a text. Throws also Error(format) above `limit` bytes.
[[nodiscard]] std::string http_get_text(const HttpRequest& request, std::uint64_t limit);

/// `path` with every byte outside A–Z a–z 0–9 - . _ ~ / as %XX.
[[nodiscard]] std::string encode_path(std::string_view path);

}  // namespace candor
