#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/sha256.h"
#include "data/index/content_hash.h"
#include "data/pipeline/row_cache.h"

namespace lockstep {
namespace {

// Of which of the records [first, first + count) belong to a set.
std::string hash_of(const RecordSet& set, int64_t first, int64_t count) {
  ContentHash hash;
  for (int64_t at = 0; at < count; at += 64) {
    uint64_t word = set.word(first + at);
    if (count - at < 64) word &= (uint64_t{1} << (count - at)) - 1;
    char bytes[sizeof word];
    std::memcpy(bytes, &word, sizeof word);
    hash.update({bytes, sizeof bytes});
  }
  return hash.finish();
}

// How records become rows, whichever they are.
std::string encoding_of(const FileSource& source) {
  const Format& format = source.shards().format();
  std::string text = fmt::format("{} {}\n{}", format.name(), format.version(), format.options().text());
  for (const auto& transform : source.transforms()) text += transform->text() + "\n" + transform->fitted();
  for (const Column& column : source.columns())
    text += fmt::format("column {} {} {}\n", column.name, name_of(column.dtype), to_string(column.shape));
  return sha256(text);
}

std::string key_of(const FileSource& source, const std::string& encoding, size_t shard) {
  const ShardSet& shards = source.shards();
  const ShardIndex& index = shards.index(shard);
  const int64_t first = shards.manifest().first_of(shard);
  std::string text = fmt::format("rows 1\n{}\n{} {}\n", encoding, index.content, index.records);
  for (const BadRecord& bad : index.bad) text += fmt::format("bad {} {}\n", bad.offset, bad.records);
  if (const RecordSet* selected = shards.selected())
    text += fmt::format("select {}\n", hash_of(*selected, first, index.records));
  if (const auto& weights = source.options().weights)
    text += fmt::format("weights {:08x} {:08x} {}\n", std::bit_cast<uint32_t>(weights->heavy_weight),
                        std::bit_cast<uint32_t>(weights->light_weight),
                        hash_of(*weights->heavy, first, index.records));
  return sha256(text);
}

}  // namespace

std::vector<std::string> row_cache_keys(const FileSource& source) {
  const std::string encoding = encoding_of(source);
  std::vector<std::string> keys;
  for (size_t shard = 0; shard < source.shards().manifest().shards().size(); ++shard)
    keys.push_back(key_of(source, encoding, shard));
  return keys;
}

}  // namespace lockstep
