#include "data/bytes/access_points.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "lockstep access points 1\n";
constexpr size_t kDigest = 64;
constexpr int64_t kFooter = 8 + kDigest;
constexpr size_t kPointBytes = 5 * 8;

// Windows first, then the table, its place, and its hash: the table is read at the start, windows when
// needed.
std::string to_file(const AccessPoints& found, const std::string& valid, const std::string& windows) {
  std::string table = valid;
  const auto number = [&](int64_t value) { table.append(reinterpret_cast<const char*>(&value), 8); };
  number(found.size);
  number(static_cast<int64_t>(found.points.size()));
  for (const AccessPoint& point : found.points)
    for (const int64_t value : {point.out, point.in, point.window, point.window_bytes, point.bits})
      number(value);
  const auto place = static_cast<int64_t>(windows.size());
  std::string place_bytes(reinterpret_cast<const char*>(&place), 8);
  return windows + table + place_bytes + sha256(table);
}

// Whether points of a file lie in it, in order, and their windows before the table. Hashes only say that the
// table is what somebody wrote.
bool lie_well(const AccessPoints& found, int64_t file_bytes, int64_t windows_bytes) {
  int64_t out = 0;
  for (const AccessPoint& point : found.points) {
    const int64_t first = point.bits > 0 ? 1 : 0;
    if (point.out < out || point.out > found.size || point.bits < 0 || point.bits > 7 || point.in < first ||
        point.in > file_bytes || point.window < 0 || point.window > windows_bytes || point.window_bytes < 0 ||
        point.window_bytes > windows_bytes - point.window)
      return false;
    out = point.out;
  }
  return !found.points.empty() && found.points[0].out == 0;
}

std::optional<AccessPoints> load(const std::string& path, const std::string& valid, int64_t file_bytes) {
  if (!fs::exists(path)) return {};
  return read_access_points(open_file(path), valid, file_bytes);
}

std::string points_path(const std::string& file, const IndexFolder& folder) {
  const fs::path path(file), in(folder.of(file));
  const std::string apart =
      folder.path.empty() ? "" : fmt::format(".{:.8}", sha256(fs::absolute(path).string()));
  return (in / fmt::format("{}{}.points", path.filename().string(), apart)).string();
}

}  // namespace

std::string_view name_of(Compression compression) {
  constexpr std::string_view kNames[] = {"none", "gzip", "zstd"};
  return kNames[static_cast<size_t>(compression)];
}

std::optional<AccessPoints> read_access_points(std::unique_ptr<ByteSource> sidecar, std::string_view valid,
                                               int64_t file_bytes) {
  AccessPoints found;
  found.store = std::move(sidecar);
  const int64_t size = found.store->size();
  if (size < kFooter) return {};
  std::string footer(kFooter, '\0');
  found.store->read(size - kFooter, footer);
  int64_t place = 0;
  std::memcpy(&place, footer.data(), 8);
  if (place < 0 || place > size - kFooter) return {};
  std::string table(static_cast<size_t>(size - kFooter - place), '\0');
  found.store->read(place, table);
  if (sha256(table) != std::string_view(footer).substr(8) || !table.starts_with(valid)) return {};
  std::string_view left = std::string_view(table).substr(valid.size());
  const auto take = [&](int64_t& value) {
    std::memcpy(&value, left.data(), 8);
    left.remove_prefix(8);
  };
  int64_t count = 0;
  if (left.size() < 16) return {};
  take(found.size);
  take(count);
  if (left.size() % kPointBytes != 0 || count != static_cast<int64_t>(left.size() / kPointBytes)) return {};
  found.points.resize(static_cast<size_t>(count));
  for (AccessPoint& point : found.points)
    for (int64_t* value : {&point.out, &point.in, &point.window, &point.window_bytes, &point.bits})
      take(*value);
  if (!lie_well(found, file_bytes, place)) return {};
  return found;
}

size_t AccessPoints::before(int64_t offset) const {
  const auto after = std::upper_bound(points.begin(), points.end(), offset,
                                      [](int64_t at, const AccessPoint& point) { return at < point.out; });
  return static_cast<size_t>(after - points.begin()) - 1;
}

AccessPoints access_points(const ByteSource& file, Compression compression, const IndexFolder& folder) {
  const bool kept = !file.stamp().ends_with(" text");  // in memory: there is no place beside it
  const std::string path = points_path(file.name(), folder);
  const std::string valid =
      fmt::format("{}{} {}\n{}\n", kMagic, name_of(compression), file.stamp(), file.sample());
  if (kept)
    if (auto found = load(path, valid, file.size())) return std::move(*found);
  std::string windows;
  AccessPoints found =
      compression == Compression::kGzip ? find_gzip_points(file, windows) : find_zstd_points(file);
  if (kept && folder.prepare(file.name())) try {
      write_file(path, to_file(found, valid, windows));
      if (auto kept = load(path, valid, file.size())) return std::move(*kept);
    } catch (const UserError& error) {
      log_warn("{}: where it can be entered is not kept and will be looked for at every start: {}",
               file.name(), error.what());
    }
  found.store = open_text(path, std::move(windows));
  return found;
}

}  // namespace lockstep
