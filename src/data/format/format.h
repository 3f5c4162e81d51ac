// Format: how records lie in a shard of one kind (CSV, JSONL, TFRecord ...), and how they become columns.
//
// A format is made once for a data set and used from many threads; what it knows about a single shard is in
// the shard's index and decoder. How to add one: docs/extending-input.md.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_budget.h"
#include "data/bytes/byte_source.h"
#include "data/format/column_block.h"
#include "data/format/missing_texts.h"
#include "data/format/shard_index.h"

namespace lockstep {

enum class BadRecords : uint8_t { kStop, kSkip };

struct FormatOptions {
  // The columns to decode and the types they are wanted in; others are passed over. Formats that know the
  // type of a column give that one, where both are numbers. Empty: all, as Format::fields describes them.
  std::vector<BlockField> columns = {};
  // What only this format knows, as written in the job file; an unknown key is a UserError.
  std::map<std::string, std::string> settings = {};
  // kSkip: index() finds every record that decoding would refuse and lists it; decoding leaves these out.
  BadRecords bad = BadRecords::kStop;
  // Which texts mean a missing value; null: the usual ones.
  std::shared_ptr<const MissingTexts> missing = {};

  const MissingTexts& missing_texts() const { return missing ? *missing : usual_missing_texts(); }
  // A line for each of them, where they are not the usual ones.
  std::string missing_lines() const;
  // Part of a data set's fingerprint.
  std::string text() const;
  // What an index depends on: settings, and where bad records are skipped, what makes a record bad.
  std::string index_text() const;
};

// Fetch: reads parts of one shard for a decoder, into buffers that are used again from block to block, and
// says how many bytes that were and how long it took.

// Memory that fetched bytes lie in: as long as the block that is decoded from them.
class FetchBuffers {
 public:
  // Everything fetched so far is given up.
  void reset() { used_ = 0; }

 private:
  friend class Fetch;
  std::vector<std::unique_ptr<std::string>> buffers_;
  size_t used_ = 0;
};

class Fetch {
 public:
  // So many zero bytes follow what is fetched.
  static constexpr int64_t kPadding = 64;

  Fetch(const ByteSource& shard, FetchBuffers& buffers) : shard_(shard), buffers_(buffers) {}

  std::string_view read(int64_t offset, int64_t bytes);
  std::vector<std::string_view> all(std::span<const GranuleSpan> spans);

  int64_t bytes() const { return bytes_; }
  int64_t nanoseconds() const { return nanoseconds_; }

 private:
  const ByteSource& shard_;
  FetchBuffers& buffers_;
  int64_t bytes_ = 0;
  int64_t nanoseconds_ = 0;
};

// One shard made ready to decode. Used from many threads at once.
class ShardDecoder {
 public:
  virtual ~ShardDecoder() = default;

  const ByteSource& bytes() const { return *bytes_; }
  const ShardIndex& index() const { return *index_; }

  // Appends records [first, first + count) to the block, which has the columns of Format::fields. What is
  // read through `fetch` lives as long as the block. Throws UserError that names file, offset and what is
  // wrong, also for a record that the index has as good.
  virtual void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const = 0;
  // The same records as rows of Format::compact_rows, one after the other; only where the format has these.
  virtual void decode_compact(Fetch& fetch, int64_t first, int64_t count, std::byte* rows) const;
  // Where the compact row of a record lies in the shard as it is, unchecked (CompactRows::holds); no bytes:
  // it has to be decoded.
  virtual GranuleSpan compact_span(int64_t /*record*/) const { return {}; }
  // How many records are unpacked at once, whichever of them are wanted (the rows of a page); 0: only those.
  virtual int64_t unpacked_together() const { return 0; }
  // Where a record lies, for messages; may read the shard.
  virtual std::string describe(int64_t record) const;

 protected:
  ShardDecoder(const ByteSource& bytes, const ShardIndex& index) : bytes_(&bytes), index_(&index) {}

 private:
  const ByteSource* bytes_;
  const ShardIndex* index_;
};

class Format {
 public:
  // Called with the bytes that were looked at since the last call, from one thread per shard.
  using Progress = std::function<void(int64_t bytes)>;

  virtual ~Format() = default;

  virtual std::string_view name() const = 0;
  // Part of what an index is valid for: changes when the same shard would be indexed or decoded otherwise.
  virtual int version() const = 0;
  // What the names of its files end in, to choose among those of a folder; empty: all of them.
  virtual std::string_view suffix() const { return {}; }
  // The columns that blocks have: what the options ask for, or all that the shard names.
  virtual std::vector<BlockField> fields(const ByteSource& shard) const = 0;
  // Whether a shard says which columns it has before its records do, and what type they have: text is then
  // never read as numbers.
  virtual bool names_columns() const { return false; }
  virtual bool is_typed() const { return false; }
  // Columns of a shard that cannot be read and are passed over unless they are asked for: names and reasons.
  virtual std::vector<std::pair<std::string, std::string>> unread(const ByteSource& /*shard*/) const {
    return {};
  }
  // Throws UserError for a wanted column that is in none of the shards. Formats that know their columns do
  // that in fields(); of those whose records name their values themselves, the first records are looked at.
  virtual void check_columns(std::span<const std::unique_ptr<ByteSource>> /*shards*/) const {}
  // All columns that the shards have but those named, in types that hold every value of any record as it is.
  // Throws UserError for a column that cannot be read, or is not in all shards of a format that knows its
  // columns.
  virtual std::vector<BlockField> all_fields(std::span<const std::unique_ptr<ByteSource>> shards,
                                             const std::vector<std::string>& without) const;
  // Looks through a whole shard in order. Does not depend on the wanted columns unless bad records are
  // skipped. Memory stays small however long the shard or a record is. The
  // content's hash is added by the caller. A shard without records is a UserError, unless all of them are
  // bad.
  virtual ShardIndex index(const ByteSource& shard, const Progress& progress) const = 0;
  // Both outlive the decoder.
  virtual std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const = 0;

  // How records are kept until batches are made of them; null: as columns.
  virtual const CompactRows* compact_rows() const { return nullptr; }
  // What is kept between the blocks that are decoded (unpacked pages) is counted in this budget from now on,
  // of which it may take a third; false: nothing is kept.
  virtual bool use_memory(const std::shared_ptr<ByteBudget>& /*memory*/) const { return false; }

  const FormatOptions& options() const { return options_; }

 protected:
  explicit Format(FormatOptions options) : options_(std::move(options)) {}

 private:
  FormatOptions options_;
};

}  // namespace lockstep
