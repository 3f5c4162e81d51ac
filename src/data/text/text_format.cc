#include "data/text/text_format.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/tokens/token_rows.h"

namespace lockstep {
namespace {

class TextDecoder : public ShardDecoder {
 public:
  TextDecoder(const ByteSource& shard, const ShardIndex& index, int64_t seq)
      : ShardDecoder(shard, index), seq_(seq) {}

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    const std::string_view text = fetch.read(first * seq_, count * seq_ + 1);
    const auto values = static_cast<size_t>(count * seq_);
    append(text.substr(0, values), block.columns[0].as<int32_t>());
    append(text.substr(1, values), block.columns[1].as<int32_t>());
    block.records += count;
  }

  GranuleSpan compact_span(int64_t record) const override { return {record * seq_, seq_ + 1, record}; }

  void decode_compact(Fetch& fetch, int64_t first, int64_t count, std::byte* rows) const override {
    const std::string_view text = fetch.read(first * seq_, count * seq_ + 1);
    for (int64_t r = 0; r < count; ++r)
      std::memcpy(rows + r * (seq_ + 1), text.data() + r * seq_, static_cast<size_t>(seq_ + 1));
  }

  std::string describe(int64_t record) const override { return bytes().place(record * seq_); }

 private:
  static void append(std::string_view text, std::vector<int32_t>& values) {
    const size_t before = values.size();
    values.resize(before + text.size());
    std::transform(text.begin(), text.end(), values.begin() + static_cast<std::ptrdiff_t>(before),
                   [](char byte) { return static_cast<unsigned char>(byte); });
  }

  int64_t seq_;
};

class TextFormat : public Format {
 public:
  explicit TextFormat(const FormatOptions& options) : Format(options) {
    if (!options.columns.empty()) throw UserError("text has columns of its own; ask for none by name");
    for (const auto& [key, value] : options.settings) {
      if (key != "seq") throw UserError("text has no setting '{}'; it has seq", key);
      seq_ = integer_of(value).value_or(0);
    }
    if (seq_ < 1 || seq_ > (int64_t{1} << 30))
      throw UserError("text: seq must be a whole number from 1 to 2^30");
    rows_ = TokenRows(seq_, 1, 256);
  }

  std::string_view name() const override { return "text"; }
  int version() const override { return 1; }

  std::vector<BlockField> fields(const ByteSource&) const override {
    return {{"tokens", ValueType::kI32, seq_}, {"targets", ValueType::kI32, seq_}};
  }

  const CompactRows* compact_rows() const override { return &rows_; }

  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    if (shard.size() <= seq_)
      throw UserError(
          "{}: the text has {} bytes, too few for one sequence of {} tokens; use more text or shorter "
          "sequences",
          shard.name(), shard.size(), seq_);
    progress(shard.size());
    const int64_t records = (shard.size() - 1) / seq_;
    return {.records = records, .granule = records, .offsets = {0, static_cast<uint64_t>(shard.size())}};
  }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    return std::make_unique<TextDecoder>(shard, index, seq_);
  }

 private:
  int64_t seq_ = 0;
  TokenRows rows_{0, 1, 256};
};

}  // namespace

std::unique_ptr<Format> make_text_format(const FormatOptions& options) {
  return std::make_unique<TextFormat>(options);
}

}  // namespace lockstep
