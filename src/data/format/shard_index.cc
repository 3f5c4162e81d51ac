#include "data/format/shard_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep {
namespace {

constexpr std::string_view kMagic = "lockstep index 2\n";
constexpr size_t kDigest = 64;
constexpr int64_t kGranuleBytes = 4096;

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void number(uint64_t value) {
    char bytes[8];
    std::memcpy(bytes, &value, 8);
    out_.append(bytes, 8);
  }
  void text(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  template <typename T>
  void numbers(const std::vector<T>& values) {
    static_assert(sizeof(T) == 8);
    number(values.size());
    out_.append(reinterpret_cast<const char*>(values.data()), values.size() * 8);
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(8).data(), 8);
    return value;
  }
  std::string text() { return std::string(take(number())); }
  template <typename T>
  std::vector<T> numbers() {
    const uint64_t count = number();
    if (count > left_.size() / 8) throw UserError("the index ends too early");
    std::vector<T> values(count);
    const std::string_view bytes = take(count * 8);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  bool done() const { return left_.empty(); }

 private:
  std::string_view take(uint64_t count) {
    if (count > left_.size()) throw UserError("the index ends too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  std::string_view left_;
};

// What the arithmetic on an index relies on: an index that a defect or another program wrote must be refused
// here, not read beyond an array there.
bool is_consistent(const ShardIndex& index) {
  // Sums and products of a few of these are numbers then.
  const auto is_count = [](int64_t value) { return value >= 0 && value <= int64_t{1} << 52; };
  if (!is_count(index.records) || !is_count(index.granule) || index.offsets.empty()) return false;
  const auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (std::any_of(index.offsets.begin(), index.offsets.end(), [&](uint64_t at) { return at > most; }))
    return false;
  if (!std::is_sorted(index.bad.begin(), index.bad.end(),
                      [](const BadRecord& a, const BadRecord& b) { return a.offset < b.offset; }))
    return false;
  // Row groups, which are given, may lie in any order.
  if (index.granule > 0)
    return index.firsts.empty() && std::is_sorted(index.offsets.begin(), index.offsets.end()) &&
           index.granules() == index.records / index.granule + (index.records % index.granule != 0 ? 1 : 0);
  return index.firsts.size() == index.offsets.size() && index.firsts.front() == 0 &&
         index.firsts.back() == index.records && std::is_sorted(index.firsts.begin(), index.firsts.end());
}

}  // namespace

int64_t ShardIndex::granule_of(int64_t record) const {
  if (granule > 0) return record / granule;
  return std::upper_bound(firsts.begin(), firsts.end(), record) - firsts.begin() - 1;
}

int64_t ShardIndex::first_of(int64_t granule_index) const {
  return granule > 0 ? std::min(granule_index * granule, records)
                     : firsts[static_cast<size_t>(granule_index)];
}

bool ShardIndex::is_bad(int64_t offset) const {
  return std::binary_search(bad.begin(), bad.end(), BadRecord{offset, {}},
                            [](const BadRecord& a, const BadRecord& b) { return a.offset < b.offset; });
}

GranuleSpan span_of(const ShardIndex& index, int64_t first, int64_t count) {
  LOCKSTEP_CHECK(first >= 0 && count > 0 && first + count <= index.records, "records [{}, {}) of {}", first,
                 first + count, index.records);
  const int64_t begin = index.granule_of(first);
  const int64_t end = index.granule_of(first + count - 1) + 1;
  const auto offset = static_cast<int64_t>(index.offsets[static_cast<size_t>(begin)]);
  return {offset, static_cast<int64_t>(index.offsets[static_cast<size_t>(end)]) - offset,
          index.first_of(begin)};
}

int64_t records_together(const ShardIndex& index, int64_t first, int64_t count) {
  if (index.granule > 0) return count;
  const auto end = static_cast<size_t>(index.granule_of(first + count - 1));
  for (auto g = static_cast<size_t>(index.granule_of(first)) + 1; g < end; ++g)
    if (index.firsts[g] == index.firsts[g + 1]) return index.firsts[g] - first;
  return count;
}

int64_t granule_for(int64_t bytes, int64_t records) {
  const int64_t each = std::max<int64_t>(bytes / std::max<int64_t>(records, 1), 1);
  return static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(kGranuleBytes / each, 1))));
}

std::string to_bytes(const ShardIndex& index) {
  std::string body;
  Writer writer(body);
  writer.number(static_cast<uint64_t>(index.records));
  writer.number(static_cast<uint64_t>(index.granule));
  writer.numbers(index.offsets);
  writer.numbers(index.firsts);
  writer.number(index.bad.size());
  for (const BadRecord& record : index.bad) {
    writer.number(static_cast<uint64_t>(record.offset));
    writer.text(record.reason);
    writer.number(static_cast<uint64_t>(record.records));
  }
  writer.text(index.extra);
  writer.text(index.content);
  return std::string(kMagic) + sha256(body) + body;
}

ShardIndex parse_index(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kDigest)
    throw UserError("not an index of this version");
  bytes.remove_prefix(kMagic.size());
  const std::string_view body = bytes.substr(kDigest);
  if (sha256(body) != bytes.substr(0, kDigest)) throw UserError("the index is damaged");
  Reader reader(body);
  ShardIndex index;
  index.records = static_cast<int64_t>(reader.number());
  index.granule = static_cast<int64_t>(reader.number());
  index.offsets = reader.numbers<uint64_t>();
  index.firsts = reader.numbers<int64_t>();
  const uint64_t bad = reader.number();
  for (uint64_t i = 0; i < bad; ++i) {
    BadRecord record;
    record.offset = static_cast<int64_t>(reader.number());
    record.reason = reader.text();
    record.records = static_cast<int64_t>(reader.number());
    index.bad.push_back(std::move(record));
  }
  index.extra = reader.text();
  index.content = reader.text();
  if (!reader.done() || !is_consistent(index)) throw UserError("the index is damaged");
  return index;
}

}  // namespace lockstep
