// RecordReader: records in the order of their files, as the inputs of a model and, beside them, as columns to
// be written again: what predictions are made of.
//
// Any range of records can be read by any thread, each into a scratch of its own; what it holds is a function
// of the files and the range alone. Nothing is kept from one range to the next.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/shards/shard_set.h"
#include "data/source/source.h"
#include "data/transform/transform.h"

namespace lockstep {

// What one thread reads into, used again from range to range.
struct RecordScratch {
  int64_t records = 0;
  std::vector<const void*> inputs;  // the rows of each of the reader's columns, one after the other
  ColumnBlock own;                  // the reader's own columns

  // What the two above lie in.
  BlockScratch decoded, written;
  std::optional<Batch> batch;
  std::vector<std::string> texts;
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  virtual int64_t size() const = 0;
  // For the model: labels too, all zero where they are not known.
  const std::vector<Column>& columns() const { return columns_; }
  // To be written with an answer.
  const std::vector<BlockField>& own() const { return own_; }
  // Records [first, first + count). Throws UserError that names the record and what is wrong with it.
  virtual void read(int64_t first, int64_t count, RecordScratch& into) const = 0;

 protected:
  RecordReader(std::vector<Column> columns, std::vector<BlockField> own)
      : columns_(std::move(columns)), own_(std::move(own)) {}

 private:
  std::vector<Column> columns_;
  std::vector<BlockField> own_;
};

// Columns of one value that say which record it is, where its own cannot be written.
inline constexpr const char* kRecordColumn = "record";  // its number in all files, from 0
inline constexpr const char* kPlaceColumn = "place";    // where it lies

using RecordPlace = std::function<std::string(int64_t record)>;

// Of shards and transforms that are fitted. `written` has the columns to write of the same records; where it
// is null, `own` names some of the two above. What formats keep between ranges takes a third of `budget`
// bytes at most. Without `place` the shards say where a record lies.
std::unique_ptr<RecordReader> make_record_reader(std::shared_ptr<const ShardSet> shards,
                                                 Transforms transforms, std::vector<Column> columns,
                                                 std::shared_ptr<const ShardSet> written,
                                                 const std::vector<std::string>& own, int64_t budget,
                                                 RecordPlace place = {});
// Of any other source.
std::unique_ptr<RecordReader> make_record_reader(std::shared_ptr<const Source> source,
                                                 const std::vector<std::string>& own);

}  // namespace lockstep
