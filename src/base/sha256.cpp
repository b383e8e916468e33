#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace candor {

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (!context_->md || EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr) != 1)
    fail(ErrorCode::internal, "OpenSSL offers no SHA-256");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(std::span<const std::byte> data) {
  if (EVP_DigestUpdate(context_->md, data.data(), data.size()) != 1) fail(ErrorCode::internal, "SHA-256 failed");
  return *this;
}

Sha256& Sha256::update(std::string_view text) {
  return update(std::as_bytes(std::span(text)));
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  if (EVP_DigestFinal_ex(context_->md, digest.data(), &size) != 1) fail(ErrorCode::internal, "SHA-256 failed");
  std::string out;
  for (const unsigned char byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

std::string sha256_hex(std::string_view text) {
  return Sha256().update(text).hex();
}
std::string sha256_hex(std::span<const std::byte> data) {
  return Sha256().update(data).hex();
}

}  // namespace candor
