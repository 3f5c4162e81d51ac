#include "data/format/format.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace lockstep {

std::string FormatOptions::text() const {
  std::string text = fmt::format("bad {}\n", bad == BadRecords::kSkip ? "skip" : "stop");
  for (const BlockField& field : columns)
    text += fmt::format("column {} {} {}\n", field.name, name_of(field.type), field.width);
  for (const auto& [key, value] : settings) text += fmt::format("setting {} {}\n", key, value);
  return text + missing_lines();
}

std::string FormatOptions::missing_lines() const {
  std::string text;
  if (missing)
    for (const std::string& absent : missing->texts()) text += fmt::format("missing {}\n", absent);
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

std::string_view Fetch::read(int64_t offset, int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  if (buffers_.used_ == buffers_.buffers_.size())
    buffers_.buffers_.push_back(std::make_unique<std::string>());
  std::string& buffer = *buffers_.buffers_[buffers_.used_++];
  const auto size = static_cast<size_t>(bytes);
  if (buffer.size() < size + kPadding) buffer.resize(size + kPadding);
  const auto start = Clock::now();
  shard_.read(offset, std::span(buffer).first(size));
  nanoseconds_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  bytes_ += bytes;
  std::fill_n(buffer.data() + size, kPadding, '\0');
  return {buffer.data(), size};
}

std::vector<std::string_view> Fetch::all(std::span<const GranuleSpan> spans) {
  std::vector<std::string_view> fetched;
  for (const GranuleSpan& span : spans) fetched.push_back(read(span.offset, span.bytes));
  return fetched;
}

}  // namespace lockstep
