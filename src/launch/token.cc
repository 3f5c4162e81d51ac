#include "launch/token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "launch/descriptor.h"

namespace lockstep {
namespace {

constexpr size_t kLeastLength = 16;
constexpr size_t kMostLength = 4096;

std::string hexadecimal(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string random_hexadecimal() {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) throw DeviceError("the system gives no random bytes");
  return hexadecimal(bytes.data(), bytes.size());
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

void check_length(const std::string& token, std::string_view name) {
  if (token.size() < kLeastLength || token.size() > kMostLength)
    throw UserError("{} has {} characters; a token has {} to {}, for instance from: openssl rand -hex 16",
                    name, token.size(), kLeastLength, kMostLength);
}

}  // namespace

std::string random_token() { return random_hexadecimal(); }
std::string random_nonce() { return random_hexadecimal(); }

std::string proof_of(std::string_view token, std::string_view side, std::string_view name,
                     std::string_view client_nonce, std::string_view server_nonce) {
  const std::string text =
      fmt::format("lockstep store\n{}\n{}\n{}\n{}", side, client_nonce, server_nonce, name);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
           &length) == nullptr)
    throw InternalError("HMAC failed");
  return hexadecimal(digest.data(), length);
}

bool same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string token_from(const Variables& variables) {
  if (const auto token = find_variable(variables, "LOCKSTEP_TOKEN")) {
    check_length(std::string(*token), "LOCKSTEP_TOKEN");
    return std::string(*token);
  }
  if (const auto path = find_variable(variables, "LOCKSTEP_TOKEN_FILE")) {
    std::string token = trimmed(read_file(std::string(*path), kMostLength));
    check_length(token, fmt::format("{} (LOCKSTEP_TOKEN_FILE)", *path));
    return token;
  }
  return "";
}

RunTokenFile::RunTokenFile(const Variables& variables, int64_t port) {
  const auto runtime = find_variable(variables, "XDG_RUNTIME_DIR");
  folder_ = runtime
                ? fmt::format("{}/lockstep", *runtime)
                : (std::filesystem::temp_directory_path() / fmt::format("lockstep-{}", getuid())).string();
  path_ = fmt::format("{}/token-{}", folder_, port);
}

void RunTokenFile::write(std::string_view token) const {
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    throw UserError("cannot make the folder {}: {}", folder_, std::strerror(errno));
  struct stat status {};
  // In a folder that all can write to, somebody else may have made it first.
  if (lstat(folder_.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != getuid() ||
      (status.st_mode & 077) != 0)
    throw UserError("{} is not a folder that only this user can enter; remove it, or set LOCKSTEP_TOKEN",
                    folder_);
  const std::string fresh = fmt::format("{}.{}", path_, getpid());
  unlink(fresh.c_str());
  const Descriptor file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || ::write(file.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size()) ||
      rename(fresh.c_str(), path_.c_str()) != 0)
    throw UserError("cannot write {}: {}", path_, std::strerror(errno));
}

std::string RunTokenFile::read() const {
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || status.st_uid != getuid() || (status.st_mode & 077) != 0)
    return "";
  std::array<char, kMostLength> buffer{};
  const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
  return got > 0 ? std::string(buffer.data(), static_cast<size_t>(got)) : "";
}

void RunTokenFile::remove() const noexcept { unlink(path_.c_str()); }

}  // namespace lockstep
