#include "data/csv.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "data/csv_reader.h"
#include "data/files.h"
#include "data/slice.h"

namespace lockstep {
namespace {

constexpr int64_t kSampledRecords = 10000;
constexpr int64_t kShardLimit = int64_t{1} << 36;

// `read` keeps what must be read first.
const std::string& text_of(const CsvShard& shard, std::string& read) {
  return shard.text ? *shard.text : read = read_file(shard.name, kShardLimit);
}

std::vector<std::string> read_header(CsvReader& reader, const std::string& name) {
  std::vector<std::string_view> fields;
  if (!reader.next(fields))
    throw UserError("{}: the file is empty; its first line must name the columns", name);
  std::vector<std::string> header(fields.begin(), fields.end());
  for (size_t i = 0; i < header.size(); ++i)
    if (std::find(header.begin(), header.begin() + static_cast<int64_t>(i), header[i]) !=
        header.begin() + static_cast<int64_t>(i))
      throw UserError("{}:{}: two columns are called '{}'; rename one", name, reader.line(), header[i]);
  return header;
}

void check_count(const std::string& name, const CsvReader& reader, size_t fields, size_t columns) {
  if (fields == columns) return;
  throw UserError(
      "{}:{}: {} fields, but the header names {} columns; quote fields that contain a comma or a new line",
      name, reader.line(), fields, columns);
}

CsvEncoding roles_of(const CsvOptions& options, const std::vector<CsvShard>& shards) {
  if (shards.empty()) throw UserError("no CSV shards are given");
  std::string read;
  const std::string& text = text_of(shards[0], read);
  CsvReader reader(shards[0].name, text);
  const std::vector<std::string> header = read_header(reader, shards[0].name);
  std::vector<std::vector<std::string>> sample;
  std::vector<std::string_view> fields;
  while (static_cast<int64_t>(sample.size()) < kSampledRecords && reader.next(fields)) {
    check_count(shards[0].name, reader, fields.size(), header.size());
    sample.emplace_back(fields.begin(), fields.end());
  }
  return resolve_roles(options, shards[0].name, header, sample);
}

size_t position_of(const std::vector<std::string>& header, const std::string& column,
                   const std::string& file) {
  const auto found = std::find(header.begin(), header.end(), column);
  if (found != header.end()) return static_cast<size_t>(found - header.begin());
  const std::vector<std::string_view> known(header.begin(), header.end());
  throw UserError("{}:1: there is no column '{}'; {}", file, column, suggestion(column, known));
}

}  // namespace

std::vector<CsvShard> csv_shards(const std::vector<std::string>& files) {
  std::vector<CsvShard> shards;
  for (const std::string& path : expand_files(files, ".csv")) shards.push_back({path, {}});
  return shards;
}

CsvSource::CsvSource(const CsvOptions& options, const std::vector<CsvShard>& shards)
    : encoding_(roles_of(options, shards)) {
  RawNumbers numbers;
  const std::string content = load(shards, numbers);
  const size_t fitted = static_cast<size_t>(size() - held_out(size(), options.hold_out));
  for (size_t i = 0; i < numbers.size(); ++i)
    fit_numeric(options, summarise(std::span(numbers[i]).first(fitted)), encoding_.numeric[i]);
  encode(numbers);
  fingerprint_ = sha256("csv 1\n" + to_text(encoding_) + content);
}

CsvSource::CsvSource(const CsvEncoding& encoding, const std::vector<CsvShard>& shards) : encoding_(encoding) {
  RawNumbers numbers;
  const std::string content = load(shards, numbers);
  encode(numbers);
  fingerprint_ = sha256("csv 1\n" + to_text(encoding_) + content);
}

std::string CsvSource::load(const std::vector<CsvShard>& shards, RawNumbers& numbers) {
  numbers.resize(encoding_.numeric.size());
  std::string hashes, read;
  for (const CsvShard& shard : shards) {
    const std::string& text = text_of(shard, read);
    hashes += sha256(text) + "\n";
    load_shard(shard.name, text, numbers);
  }
  return hashes;
}

void CsvSource::load_shard(const std::string& name, const std::string& text, RawNumbers& numbers) {
  CsvReader reader(name, text);
  const std::vector<std::string> header = read_header(reader, name);
  const size_t label = position_of(header, encoding_.label, name);
  std::vector<size_t> numeric;
  for (const CsvNumeric& column : encoding_.numeric)
    numeric.push_back(position_of(header, column.name, name));
  std::vector<size_t> categorical;
  for (const std::string& column : encoding_.categorical)
    categorical.push_back(position_of(header, column, name));

  shards_.push_back({name, size()});
  std::vector<std::string_view> fields;
  while (reader.next(fields)) {
    check_count(name, reader, fields.size(), header.size());
    for (size_t i = 0; i < numeric.size(); ++i) {
      const std::string_view field = fields[numeric[i]];
      const auto value = is_missing(field) ? std::numeric_limits<double>::quiet_NaN() : parse_number(field);
      if (!value)
        throw UserError(
            "{}:{}: column '{}' has '{}', which is not a number (of at most 1e30); name the column as "
            "categorical or leave "
            "the field empty",
            name, reader.line(), encoding_.numeric[i].name, field.substr(0, 40));
      numbers[i].push_back(*value);
    }
    for (const size_t position : categorical)
      categories_.push_back(category_bucket(fields[position], encoding_.buckets));
    const auto value = parse_label(fields[label]);
    if (!value)
      throw UserError("{}:{}: the label '{}' is '{}'; it must be 0 or 1", name, reader.line(),
                      encoding_.label, fields[label].substr(0, 40));
    labels_.push_back(*value);
    lines_.push_back(static_cast<uint32_t>(reader.line()));
  }
  if (size() == shards_.back().first) throw UserError("{}: the file has a header but no records", name);
}

void CsvSource::encode(const RawNumbers& numbers) {
  const size_t width = static_cast<size_t>(encoding_.dense());
  dense_.resize(labels_.size() * width);
  size_t flag = encoding_.numeric.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const CsvNumeric& column = encoding_.numeric[i];
    for (size_t r = 0; r < labels_.size(); ++r) {
      dense_[r * width + i] = encode_number(column, numbers[i][r]);
      if (column.missing_flag) dense_[r * width + flag] = std::isnan(numbers[i][r]) ? 1.0f : 0.0f;
    }
    flag += column.missing_flag;
  }
}

std::vector<Column> CsvSource::columns() const {
  std::vector<Column> columns{{"dense", DType::kF32, {encoding_.dense()}}};
  for (size_t i = 0; i < encoding_.categorical.size(); ++i)
    columns.push_back({fmt::format("category.{}", i), DType::kI32, {}});
  columns.push_back({"labels", DType::kF32, {}});
  return columns;
}

void CsvSource::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  const size_t width = static_cast<size_t>(encoding_.dense());
  const size_t tables = encoding_.categorical.size();
  for (size_t r = 0; r < records.size(); ++r) {
    const int64_t row = static_cast<int64_t>(r);
    const bool present = records[r] != kNoRecord;
    const size_t record = present ? static_cast<size_t>(records[r]) : 0;
    const auto dense = batch.record<float>(0, row);
    for (size_t i = 0; i < width; ++i) dense[i] = present ? dense_[record * width + i] : 0.0f;
    for (size_t i = 0; i < tables; ++i)
      batch.record<int32_t>(1 + i, row)[0] = present ? categories_[record * tables + i] : 0;
    batch.record<float>(1 + tables, row)[0] = present ? labels_[record] : 0.0f;
  }
}

std::string CsvSource::describe(int64_t record) const {
  const auto after = std::upper_bound(shards_.begin(), shards_.end(), record,
                                      [](int64_t value, const Shard& shard) { return value < shard.first; });
  return fmt::format("{}:{}", std::prev(after)->name, lines_[static_cast<size_t>(record)]);
}

}  // namespace lockstep
