#include "data/format/format.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {
std::string FormatOptions::text() const {
  std::string text = fmt::format("bad {}\n", bad == BadRecords::kSkip ? "skip" : "stop");
  for (const BlockField& field : columns)
    text += fmt::format("column {} {} {}\n", field.name, name_of(field.type), field.width);
  for (const auto& [key, value] : settings) text += fmt::format("setting {} {}\n", key, value);
  return text;
}

std::string FormatOptions::index_text() const {
  return bad == BadRecords::kSkip ? text() : FormatOptions{{}, settings, bad}.text();
}

std::vector<BlockField> Format::all_fields(std::span<const std::unique_ptr<ByteSource>> shards,
                                           const std::vector<std::string>& without) const {
  const auto fields_of = [&](const ByteSource& shard) {
    std::vector<BlockField> left = fields(shard);
    std::erase_if(left, [&](const BlockField& field) {
      return std::find(without.begin(), without.end(), field.name) != without.end();
    });
    return left;
  };
  const std::vector<BlockField> first = fields_of(*shards[0]);
  const auto has = [](const std::vector<BlockField>& all, const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const BlockField& field) { return field.name == name; });
  };
  for (const auto& shard : shards.subspan(1))
    for (const BlockField& field : fields_of(*shard))
      if (!has(first, field.name))
        throw UserError("{} has a column '{}', which {} does not have", shard->name(), field.name,
                        shards[0]->name());
  return first;
}

void ShardDecoder::decode_compact(Fetch&, int64_t, int64_t, std::byte*) const {
  throw InternalError("{} has no compact rows", bytes().name());
}

std::string ShardDecoder::describe(int64_t record) const {
  const int64_t granule = index().granule_of(record);
  return fmt::format("{} record {} (after byte {})", bytes().name(), record,
                     index().offsets[static_cast<size_t>(granule)]);
}

}  // namespace lockstep
