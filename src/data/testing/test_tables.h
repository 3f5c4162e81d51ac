// Generated transactions in files of a format, as tables with and without kept rows: for tests of data.cache.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/cache/row_cache_source.h"
#include "data/synthetic/fraud_shards.h"
#include "data/table/table.h"

namespace lockstep {

// A batch of these records, as bytes.
inline std::string batch_bytes(const Source& source, const std::vector<int64_t>& records) {
  Batch batch(source.columns(), static_cast<int64_t>(records.size()));
  source.fill(records, batch);
  std::string bytes;
  for (size_t c = 0; c < batch.columns().size(); ++c)
    bytes.append(static_cast<const char*>(batch.data(c)), static_cast<size_t>(batch.bytes(c)));
  return bytes;
}

// All records of a source in an order that mixes them, and one that is none, as bytes.
inline std::string mixed_rows(const Source& source) {
  std::vector<int64_t> records{kNoRecord};
  int64_t step = source.size() / 3 + 1;
  while (std::gcd(step, source.size()) != 1) ++step;
  for (int64_t i = 0; i < source.size(); ++i) records.push_back(i * step % source.size());
  return batch_bytes(source, records);
}

class RowCacheTest : public testing::Test {
 protected:
  explicit RowCacheTest(std::string format = "csv", int64_t rows = 9000) {
    FraudOptions fraud;
    fraud.rows = rows;
    fraud.eval_rows = 1000;
    fraud.format = format;
    fraud.shards = 3;
    write_fraud(fraud, folder_.path("tx"));
    options_.format = std::move(format);
    options_.encoding.label = "is_fraud";
    options_.encoding.ignore = {"card"};
    options_.encoding.buckets = 1000;
    options_.index_folder = folder_.path("index");
    rows_.folder = folder_.path("rows");
  }

  Table open() const { return open_table(options_, {folder_.path("tx/train-*")}); }
  // As it is read, with kept rows; files are looked at in every batch.
  std::shared_ptr<const Source> keep(const std::shared_ptr<const FileSource>& source) const {
    return std::make_shared<RowCacheSource>(source, open_row_cache(*source, rows_),
                                            std::chrono::nanoseconds(0));
  }
  // What is in the folder of rows, less locks.
  std::vector<std::string> kept(const std::string& ending = ".rows") const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(rows_.folder))
      if (entry.path().extension() == ending) found.push_back(entry.path().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  static void flip(const std::string& path, int64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(offset);
    file.put(byte);
  }
  std::string error_of_keeping() const {
    try {
      open_row_cache(*open().source, rows_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  TestFolder folder_;
  TableOptions options_;
  RowCacheOptions rows_;
};

}  // namespace lockstep
