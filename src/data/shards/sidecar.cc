#include "data/shards/sidecar.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "data/bytes/kept_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Hashes what is read in order, each byte once; the rest at the end.
class HashingBytes : public ByteSource {
 public:
  explicit HashingBytes(const ByteSource& bytes) : ByteSource(bytes.name()), bytes_(bytes) {}

  int64_t size() const override { return bytes_.size(); }
  std::string stamp() const override { return bytes_.stamp(); }
  void read(int64_t offset, std::span<char> out) const override {
    bytes_.read(offset, out);
    const int64_t end = offset + static_cast<int64_t>(out.size());
    if (offset > hashed_ || end <= hashed_) return;
    hash_.update(std::string_view(out.data(), out.size()).substr(static_cast<size_t>(hashed_ - offset)));
    hashed_ = end;
  }
  std::string finish() const {
    std::string buffer;
    while (hashed_ < size()) {
      buffer.resize(static_cast<size_t>(std::min<int64_t>(size() - hashed_, 1 << 20)));
      read(hashed_, buffer);
    }
    return hash_.finish();
  }

 private:
  const ByteSource& bytes_;
  mutable ContentHash hash_;
  mutable int64_t hashed_ = 0;
};

// What stands before the index in a sidecar.
std::string validity(const Format& format, const ByteSource& shard) {
  return fmt::format("{} {}\n{}{}\n{}\n\n", format.name(), format.version(), format.options().index_text(),
                     shard.stamp(), shard.sample());
}

std::optional<ShardIndex> load(const std::string& path, const std::string& valid) {
  if (!fs::exists(path)) return {};
  try {
    const std::string bytes = read_file(path, int64_t{1} << 40);
    if (!bytes.starts_with(valid)) return {};
    return parse_index(std::string_view(bytes).substr(valid.size()));
  } catch (const UserError& error) {
    log_warn("{}: {}; the index is built again", path, error.what());
    return {};
  }
}

}  // namespace

ShardIndex build_index(const Format& format, const ByteSource& shard, const Format::Progress& progress) {
  const HashingBytes bytes(shard);
  ShardIndex index = format.index(bytes, progress);
  index.content = bytes.finish();
  return index;
}

std::string kept_stem(const std::string& shard, const IndexFolder& folder) {
  const fs::path path(shard);
  // Shards of one name from several folders may meet in a folder that is named.
  const std::string apart = folder.path.empty() ? "" : sha256(fs::absolute(path).string()).substr(0, 8) + ".";
  return fmt::format("{}.{}", path.filename().string(), apart);
}

std::string kept_path(const std::string& shard, const IndexFolder& folder, std::string_view key,
                      std::string_view ending) {
  return (fs::path(folder.of(shard)) / fmt::format("{}{}{}", kept_stem(shard, folder), key, ending)).string();
}

std::string sidecar_path(const Format& format, const std::string& shard, const IndexFolder& folder) {
  const std::string key = sha256(fmt::format("{}\n{}", format.name(), format.options().index_text()));
  return kept_path(shard, folder, std::string_view(key).substr(0, 12), ".idx");
}

IndexResult index_of_file(const Format& format, const ByteSource& shard, const IndexFolder& folder,
                          const Format::Progress& progress) {
  const std::string path = sidecar_path(format, shard.name(), folder);
  const std::string valid = validity(format, shard);
  if (auto index = load(path, valid)) return {std::move(*index), false};
  if (!folder.prepare(shard.name())) return {build_index(format, shard, progress), true};
  const FileLock lock(path + ".lock");
  if (auto index = load(path, valid)) return {std::move(*index), false};
  ShardIndex index = build_index(format, shard, progress);
  try {
    write_file(path, valid + to_bytes(index));
  } catch (const UserError& error) {
    log_warn(
        "{}: the index is not kept and will be built at every start: {}; name a folder that can be written "
        "as "
        "data.index_folder",
        shard.name(), error.what());
  }
  return {std::move(index), true};
}

}  // namespace lockstep
