// ColumnBlock: some consecutive records of a source as typed columns: what formats decode to and transforms
// work on.
//
// A column holds `width` values per record (1 for a plain column, H * W * 3 for an image), or kVarying: then
// `ends` says where each record's values end. Text and other byte strings are views; what they point to is
// the fetched bytes, or something that `keep` owns, and lives as long as the block. A missing value still
// has its place in `values` (0, or an empty view); `missing` marks it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep {

// In the order of ColumnValues' alternatives.
enum class ValueType : uint8_t { kU8, kI32, kI64, kF32, kF64, kBytes };
std::string_view name_of(ValueType type);

inline constexpr int64_t kVarying = -1;

using ColumnValues = std::variant<std::vector<uint8_t>, std::vector<int32_t>, std::vector<int64_t>,
                                  std::vector<float>, std::vector<double>, std::vector<std::string_view>>;

// What a column is called and holds, without its values.
struct BlockField {
  std::string name;
  ValueType type = ValueType::kF32;
  int64_t width = 1;
  // What the transform that makes it says about it:
  int64_t ids = 0;      // its values number the rows of a table, all below this; 0: they do not
  bool scaled = false;  // its values suit a model as they are

  bool operator==(const BlockField&) const = default;
};

class MissingTexts;

struct BlockColumn {
  std::string name;
  int64_t width = 1;
  ColumnValues values;
  std::vector<int64_t> ends = {};     // one per record, where width is kVarying
  std::vector<uint8_t> missing = {};  // one per record, 1 where there is no value; empty: none is missing
  // Which texts of the data mean a missing value (data/format/missing_texts.h); null: the usual ones.
  const MissingTexts* missing_texts = nullptr;
  bool computed = false;  // by a transform, and not what a file holds

  ValueType type() const { return static_cast<ValueType>(values.index()); }
  BlockField field() const { return {name, type(), width}; }
  template <typename T>
  std::vector<T>& as() {
    return std::get<std::vector<T>>(values);
  }
  template <typename T>
  const std::vector<T>& as() const {
    return std::get<std::vector<T>>(values);
  }
  bool is_missing(size_t record) const { return !missing.empty() && missing[record] != 0; }
};

BlockColumn make_column(const BlockField& field);

struct ColumnBlock {
  int64_t records = 0;
  std::vector<BlockColumn> columns;
  std::vector<std::shared_ptr<const void>> keep;  // what views point to beside the fetched bytes

  // Throws UserError that names the columns there are.
  size_t index_of(std::string_view name) const;
  BlockColumn& column(std::string_view name) { return columns[index_of(name)]; }
  const BlockColumn& column(std::string_view name) const { return columns[index_of(name)]; }
  std::vector<BlockField> fields() const;
  // No records, and columns of these kinds; memory of columns that it had before is used again. `missing` is
  // what their texts mean, and outlives the block.
  void reset(const std::vector<BlockField>& fields, const MissingTexts* missing = nullptr);
  int64_t bytes() const;  // of all values, without what views point to

 private:
  std::vector<ColumnValues> spare_;  // of columns that it has no more
};

// Throws UserError that names the columns there are.
size_t index_of(const std::vector<BlockField>& fields, std::string_view name);
// Leaves only the records that are marked, one byte for each.
void keep_records(const std::vector<uint8_t>& marked, ColumnBlock& block);
// Throws InternalError unless every column holds as many values as the block has records.
void check_block(const ColumnBlock& block);

// Which columns of a file that knows their names and types a job wants.

// The places in `held` of the wanted columns, in the order they are wanted; all, where none is named. A
// column keeps the type it has in the file. Throws UserError for one that is not there, or holds text where
// numbers are wanted.
std::vector<size_t> choose_columns(const std::vector<BlockField>& held, const std::vector<BlockField>& wanted,
                                   const std::string& file);

// CompactRows: records in fewer bytes than the columns of a batch take, for formats whose records need no
// transform. Blocks are kept like this, and a record is expanded straight into its row of the batch.
//
// What expand() gives for a row is what decode() gives for its record, bit by bit.
class CompactRows {
 public:
  virtual ~CompactRows() = default;

  virtual int64_t row_bytes() const = 0;
  // Whether a row that comes straight from a file has only values that decode() takes.
  virtual bool holds(const std::byte* /*row*/) const { return true; }
  // The values of one record, one pointer for each column of Format::fields.
  virtual void expand(const std::byte* row, std::span<std::byte* const> columns) const = 0;
};

}  // namespace lockstep
