#include "async/apply_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <unordered_set>

#include "base/crc32c.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/file.h"

namespace lockstep::async {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "LSASYNC1";
constexpr size_t kIdentityDigits = 64;
constexpr size_t kHeaderData = kMagic.size() + 2 * sizeof(uint32_t) + kIdentityDigits;
constexpr size_t kLogHeaderBytes = kHeaderData + sizeof(uint32_t);
constexpr size_t kPushData = sizeof(int32_t) + sizeof(uint16_t);
constexpr size_t kPushBytes = sizeof(uint32_t) + kPushData;
constexpr uint16_t kSkipped = 1 << 15;
// Larger than any log of a run: 100 million pushes.
constexpr int64_t kMostBytes = int64_t{1} << 30;

template <typename T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T take(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool is_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

std::string header_bytes(const LogHeader& header) {
  LOCKSTEP_CHECK(header.identity.size() == kIdentityDigits, "an identity of {} digits",
                 header.identity.size());
  std::string bytes(kMagic);
  put(bytes, static_cast<uint32_t>(header.staleness));
  put(bytes, static_cast<uint32_t>(header.servers));
  bytes += header.identity;
  put(bytes, crc32c(bytes));
  return bytes;
}

uint32_t check_of(uint32_t before, std::string_view data) {
  std::string covered;
  put(covered, before);
  covered += data;
  return crc32c(covered);
}

// The bytes of push `number`; `check` becomes its own.
std::string push_bytes(const AppliedPush& push, int64_t number, uint32_t& check) {
  const int64_t age = number - 1 - push.read;
  LOCKSTEP_CHECK(age >= 0 && age <= kMostStaleness, "push {} of version {}", number, push.read);
  std::string data;
  put(data, static_cast<int32_t>(push.lease - number));
  put(data, static_cast<uint16_t>(age | (push.skipped ? kSkipped : 0)));
  check = check_of(check, data);
  std::string bytes;
  put(bytes, check);
  return bytes + data;
}

LogHeader parse_header(std::string_view bytes, std::string_view path) {
  if (bytes.size() < kLogHeaderBytes || !bytes.starts_with(kMagic))
    throw UserError("{} is not the log of an asynchronous run", path);
  if (crc32c(bytes.substr(0, kHeaderData)) != take<uint32_t>(bytes, kHeaderData))
    throw UserError("{}: its first {} bytes are damaged; copy the run's folder again", path, kLogHeaderBytes);
  const LogHeader header{
      .staleness = take<uint32_t>(bytes, kMagic.size()),
      .servers = take<uint32_t>(bytes, kMagic.size() + sizeof(uint32_t)),
      .identity = std::string(bytes.substr(kHeaderData - kIdentityDigits, kIdentityDigits))};
  if (header.staleness < 1 || header.staleness > kMostStaleness || header.servers < 1 ||
      !std::all_of(header.identity.begin(), header.identity.end(), is_digit))
    throw UserError("{}: no run has a staleness of {} and {} servers", path, header.staleness,
                    header.servers);
  return header;
}

}  // namespace

ApplyLog parse_log(std::string_view bytes, std::string_view path) {
  ApplyLog log;
  log.header = parse_header(bytes, path);
  auto check = take<uint32_t>(bytes, kHeaderData);
  size_t at = kLogHeaderBytes;
  std::unordered_set<int64_t> seen;
  for (; bytes.size() - at >= kPushBytes; at += kPushBytes) {
    const std::string_view data = bytes.substr(at + sizeof(uint32_t), kPushData);
    const uint32_t own = check_of(check, data);
    if (own != take<uint32_t>(bytes, at)) break;
    check = own;
    const int64_t number = static_cast<int64_t>(log.pushes.size()) + 1;
    const auto flags = take<uint16_t>(data, sizeof(int32_t));
    const int64_t age = flags & ~kSkipped;
    const AppliedPush push{.lease = number + take<int32_t>(data, 0),
                           .read = number - 1 - age,
                           .skipped = (flags & kSkipped) != 0};
    if (age > log.header.staleness || push.read < 0)
      throw UserError("{}: push {} is {} versions old, and the bound is {}", path, number, age,
                      log.header.staleness);
    if (push.lease < 1 || !seen.insert(push.lease).second)
      throw UserError("{}: push {} is of lease {}, which {}", path, number, push.lease,
                      push.lease < 1 ? "does not exist" : "was applied before");
    log.pushes.push_back(push);
  }
  log.whole_bytes = static_cast<int64_t>(at);
  log.tail_bytes = static_cast<int64_t>(bytes.size() - at);
  return log;
}

ApplyLog read_log(const std::string& path) { return parse_log(read_file(path, kMostBytes), path); }

std::string log_bytes(const LogHeader& header, const std::vector<AppliedPush>& pushes) {
  std::string bytes = header_bytes(header);
  auto check = take<uint32_t>(bytes, kHeaderData);
  int64_t number = 0;
  for (const AppliedPush& push : pushes) bytes += push_bytes(push, ++number, check);
  return bytes;
}

LogWriter::LogWriter(std::string path, const LogHeader& header, const std::vector<AppliedPush>& kept)
    : path_(std::move(path)), pushes_(static_cast<int64_t>(kept.size())) {
  const std::string bytes = log_bytes(header, kept);
  check_ = take<uint32_t>(bytes, kept.empty() ? kHeaderData : bytes.size() - kPushBytes);
  // What is kept is in the file already, or this is its beginning: it is never rewritten in place, so that a
  // process that is killed here leaves all of it.
  if (kept.empty()) {
    write_file(path_, bytes);
  }
  descriptor_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (descriptor_.number() < 0) throw_file_error("open", path_, errno);
  if (ftruncate(descriptor_.number(), static_cast<off_t>(bytes.size())) != 0)
    throw_file_error("shorten", path_, errno);
}

void LogWriter::append(const AppliedPush& push) { write(push_bytes(push, ++pushes_, check_)); }

void LogWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t some = ::write(descriptor_.number(), bytes.data(), bytes.size());
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) throw_file_error("write", path_, errno);
    bytes.remove_prefix(static_cast<size_t>(some));
  }
}

void LogWriter::sync() {
  if (fdatasync(descriptor_.number()) != 0) throw_file_error("sync", path_, errno);
}

}  // namespace lockstep::async
