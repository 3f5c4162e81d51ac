#include "observe/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/proto_writer.h"

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };
enum SessionLogField { kStatus = 1 };
constexpr int64_t kSessionStart = 1;

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

// The latest seconds in the names of the folder's event files; 0 without any.
int64_t latest_seconds(const std::string& folder) {
  int64_t latest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t seconds = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seconds);
    latest = std::max(latest, seconds);
  }
  return latest;
}

std::string little_endian(uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string masked_crc(std::string_view bytes) { return little_endian(masked_crc32c(bytes), 4); }

ProtoWriter event(double unix_seconds) { return ProtoWriter().add_double(kWallTime, unix_seconds); }

}  // namespace

EventFile::EventFile(const std::string& folder, double unix_seconds) {
  try {
    std::filesystem::create_directories(folder);
    const int64_t seconds = std::max(static_cast<int64_t>(unix_seconds), latest_seconds(folder) + 1);
    path_ = fmt::format("{}/{}{:010}.{}.{}", folder, kPrefix, seconds, host_name(), getpid());
  } catch (const std::filesystem::filesystem_error& error) {
    throw UserError("cannot write event files into {}: {}", folder, error.code().message());
  }
  out_.open(path_, std::ios::binary | std::ios::trunc);
  append(event(unix_seconds).add_bytes(kFileVersion, "brain.Event:2").bytes());
}

void EventFile::start_session(int64_t step, double unix_seconds) {
  append(event(unix_seconds)
             .add_int(kStep, step)
             .add_bytes(kSessionLog, ProtoWriter().add_int(kStatus, kSessionStart).bytes())
             .bytes());
}

void EventFile::add_scalars(int64_t step, double unix_seconds, const std::vector<Scalar>& scalars) {
  ProtoWriter summary;
  for (const Scalar& scalar : scalars)
    summary.add_bytes(kValue, ProtoWriter()
                                  .add_bytes(kTag, scalar.tag)
                                  .add_float(kSimpleValue, static_cast<float>(scalar.value))
                                  .bytes());
  append(event(unix_seconds).add_int(kStep, step).add_bytes(kSummary, summary.bytes()).bytes());
}

void EventFile::append(std::string_view event) {
  const std::string length = little_endian(event.size(), 8);
  errno = 0;
  out_ << length << masked_crc(length) << event << masked_crc(event);
  if (!out_.flush()) throw UserError("cannot write {}: {}", path_, std::strerror(errno == 0 ? EIO : errno));
}

}  // namespace lockstep
