#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "base/error.h"

namespace lockstep {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1)
    throw DeviceError("OpenSSL offers no SHA-256");
}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1)
    throw DeviceError("SHA-256 update failed");
}

std::string Sha256::finish() {
  std::array<unsigned char, 32> digest{};
  if (EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) != 1)
    throw DeviceError("SHA-256 final failed");
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.finish();
}

}  // namespace lockstep
