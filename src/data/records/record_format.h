// RecordFormat: what formats of records one after the other have in common: which columns a shard without a
// schema has, and an index with the records that cannot be used. The columns come from its first records; bad
// records are found with the code that decodes them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/format.h"
#include "data/records/record_sink.h"

namespace lockstep {

class RecordFormat : public Format {
 public:
  // Takes the setting longest_record. Throws UserError for any other.
  RecordFormat(std::string_view name, const FormatOptions& options);

  std::string_view name() const override { return name_; }
  std::vector<BlockField> fields(const ByteSource& shard) const override;
  std::vector<BlockField> all_fields(std::span<const std::unique_ptr<ByteSource>> shards,
                                     const std::vector<std::string>& without) const override;
  void check_columns(std::span<const std::unique_ptr<ByteSource>> shards) const override;
  ShardIndex index(const ByteSource& shard, const Progress& progress) const override;

 protected:
  // Of a record: its content, or the problem that it is known to have. False: that was enough of them.
  using TakeRecord = std::function<bool(int64_t offset, std::string_view content, const char* problem)>;

  // Calls record for each, and after(bytes) when that many have been looked at and their content is let go
  // of. In little memory, however long a record is.
  virtual void scan(const ByteSource& shard, const TakeRecord& record,
                    const std::function<void(int64_t bytes)>& after) const = 0;
  // What is wrong with the bytes of a record, whatever they mean; null: nothing.
  virtual const char* damage_of(std::string_view content) const;
  virtual void survey(std::string_view content, FieldSurvey& survey) const = 0;
  virtual void read(std::string_view content, RecordSink& sink) const = 0;
  // As which a column is read that holds what was seen, and more of the kind.
  virtual BlockField field_of(const FieldSurvey::Seen& seen) const = 0;
  // The same where all values were seen: each is held as it is.
  virtual BlockField exact_field_of(const FieldSurvey::Seen& seen) const = 0;
  // Throws UserError.
  [[noreturn]] virtual void refuse(const ByteSource& shard, int64_t offset,
                                   std::string_view problem) const = 0;

  int64_t longest() const { return longest_; }

 private:
  std::string_view name_;
  int64_t longest_;
};

// RecordTrial: decodes records only to see whether they can be, with the same code that will decode them for
// use: what indexing lists as bad is then what decoding would refuse.
class RecordTrial {
 public:
  // `missing` outlives it.
  RecordTrial(std::vector<BlockField> fields, const MissingTexts& missing)
      : fields_(std::move(fields)), missing_(missing) {}

  // read(sink) appends one record. Gives what it is refused for. Everything it points to must stay until
  // restart() or the next refusal.
  template <typename Read>
  std::optional<std::string> problem(const Read& read) {
    if (!sink_ || block_.records >= kMostRecords) restart();
    try {
      read(*sink_);
      return {};
    } catch (const RecordProblem& problem) {
      sink_.reset();
      return problem.what();
    }
  }
  void restart() {
    block_.reset(fields_, &missing_);
    sink_.emplace(block_, kMostRecords);
  }

 private:
  static constexpr int64_t kMostRecords = 256;

  std::vector<BlockField> fields_;
  const MissingTexts& missing_;
  ColumnBlock block_;
  std::optional<RecordSink> sink_;
};

}  // namespace lockstep
