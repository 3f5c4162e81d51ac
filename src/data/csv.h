// CsvSource: the records of CSV shards, held in memory as encoded columns.
//
// Columns: dense f32[D] (numeric columns, then missing flags), category.<i> i32 per categorical column,
// labels f32. All shards have a header line; columns are found by name, so their order may differ between
// shards. Errors name file and line.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/csv_encoding.h"
#include "data/source.h"

namespace lockstep {

struct CsvShard {
  std::string name;                 // the path, or what messages call it
  std::optional<std::string> text;  // absent: read from the path when it is needed
};

// The shards that paths, folders and patterns name, sorted by path.
std::vector<CsvShard> csv_shards(const std::vector<std::string>& files);

class CsvSource : public Source {
 public:
  // Fits the encoding to these shards, less what the options hold out, and encodes them all.
  CsvSource(const CsvOptions& options, const std::vector<CsvShard>& shards);
  // Encodes other shards of the same table.
  CsvSource(const CsvEncoding& encoding, const std::vector<CsvShard>& shards);

  const CsvEncoding& encoding() const { return encoding_; }

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  std::vector<Column> columns() const override;
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  std::string fingerprint() const override { return fingerprint_; }
  std::string describe(int64_t record) const override;

 private:
  struct Shard {
    std::string name;
    int64_t first;  // its first record
  };
  using RawNumbers = std::vector<std::vector<double>>;  // by numeric column; NaN is missing

  // Returns the hash of the shards' bytes.
  std::string load(const std::vector<CsvShard>& shards, RawNumbers& numbers);
  void load_shard(const std::string& name, const std::string& text, RawNumbers& numbers);
  void encode(const RawNumbers& numbers);

  CsvEncoding encoding_;
  std::vector<Shard> shards_;
  std::vector<float> dense_;         // [size, D]
  std::vector<int32_t> categories_;  // [size, categorical columns]
  std::vector<float> labels_;
  std::vector<uint32_t> lines_;  // of each record in its shard
  std::string fingerprint_;
};

}  // namespace lockstep
