// Source: N records that can be read in any order, as the columns that a model's graph takes.
//
// Record i is a pure function of (source, i), so that whoever asks, in whatever batch, gets the same bytes;
// the order in which a run asks is data/order/order.h. Records may be read from several threads at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace lockstep {

class ShardSet;
class StageCounters;

// What one record holds under one name: the type of the graph input of that name without its batch axis.
struct Column {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // of one record: [] for a label, [T] for tokens, [S,S,3] for an image
};

// The columns of B records, each one dense row-major buffer [B, ...].
class Batch {
 public:
  Batch(std::vector<Column> columns, int64_t records);
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = default;

  // Some of the records, in the same memory: a batch that several threads fill at once. Not longer than this.
  Batch rows(int64_t first, int64_t count);

  int64_t records() const { return records_; }
  const std::vector<Column>& columns() const { return *columns_; }
  // Throws UserError that names the columns there are.
  size_t index_of(std::string_view name) const;

  int64_t bytes(size_t column) const {
    return records_ * columns()[column].shape.numel() * size_of(columns()[column].dtype);
  }
  const void* data(size_t column) const { return data_[column]; }
  std::byte* mutable_data(size_t column) { return data_[column]; }
  // The elements of one record, or of all of them. T must be the C++ type of the column's dtype.
  template <typename T>
  std::span<T> record(size_t column, int64_t record);
  template <typename T>
  std::span<const T> values(size_t column) const;

 private:
  Batch() = default;
  void check_type(size_t column, size_t size) const;

  std::shared_ptr<const std::vector<Column>> columns_;
  int64_t records_ = 0;
  // Zeroed by the system when it is first touched, by whoever fills it: large batches are made at once.
  struct Free {
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> owned_;  // none where the memory is another batch's
  std::vector<std::byte*> data_;
};

int64_t bytes_of_record(const std::vector<Column>& columns);

// Stands for no record, to fill a batch up: features are zero, integer labels and targets are kIgnoredLabel
// (which cross_entropy leaves out), labels of f32 are zero.
inline constexpr int64_t kNoRecord = -1;
inline constexpr int32_t kIgnoredLabel = -100;

class Source {
 public:
  virtual ~Source() = default;

  virtual int64_t size() const = 0;
  virtual std::vector<Column> columns() const = 0;
  // Writes records[r] into row r of the batch, whose columns are this source's.
  virtual void fill(std::span<const int64_t> records, Batch& batch) const = 0;
  // True if a record is another one in every epoch (random crops): then fill_in_epochs is asked.
  virtual bool varies() const { return false; }
  // Row r as it is in epoch epochs[r]; fill() gives those of epoch 0.
  virtual void fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> /*epochs*/,
                              Batch& batch) const {
    fill(records, batch);
  }
  // SHA-256 over the content, or over the definition that it is generated from: part of the run's identity.
  virtual std::string fingerprint() const = 0;
  // The memory that reading takes in an order that mixes so many records with each other; 0: none to speak
  // of.
  virtual int64_t memory_to_mix(int64_t /*records*/) const { return 0; }
  // Says that these records will be filled, in these epochs and after those of earlier calls.
  virtual void expect(std::span<const int64_t> /*records*/, std::span<const int64_t> /*epochs*/) const {}
  // A source that reads blocks can load some before they are asked for, in memory that nothing else needs:
  // how many of the records that will be filled next it wants to be told about for that, epochs included; 0:
  // it knows enough, or has no room.
  virtual int64_t loads_ahead() const { return 0; }
  // Loads what of those is needed first and not there yet; false: there is nothing to do. What goes wrong is
  // met again by whoever fills a batch with it, and only then raised.
  virtual bool load_ahead() const { return false; }
  // Takes back what was said.
  virtual void expect_nothing() const {}
  // How many consecutive records are read at once: what the order of a run should respect. A power of two;
  // 1 where any record is at hand.
  virtual int64_t block_records() const { return 1; }
  // Whether it decodes what could be kept as rows (data.cache).
  virtual bool could_keep_rows() const { return false; }
  // Where the time of filling batches goes; null where there is nothing to tell apart.
  virtual const StageCounters* stages() const { return nullptr; }
  // Where a record comes from, for messages: "tx/train-00002.csv:418".
  virtual std::string describe(int64_t record) const = 0;
  // The files that the records are decoded from; null for what is generated or held in memory.
  virtual const ShardSet* files() const { return nullptr; }
  // Which record of the files a record is.
  virtual int64_t record_in_files(int64_t record) const { return record; }

 protected:
  // Throws InternalError unless the batch fits and every record is kNoRecord or in [0, size()).
  void check_fill(std::span<const int64_t> records, const Batch& batch) const;
};

template <typename T>
std::span<T> Batch::record(size_t column, int64_t record) {
  check_type(column, sizeof(T));
  const size_t each = static_cast<size_t>(columns()[column].shape.numel());
  return {reinterpret_cast<T*>(data_[column]) + static_cast<size_t>(record) * each, each};
}

template <typename T>
std::span<const T> Batch::values(size_t column) const {
  check_type(column, sizeof(T));
  return {reinterpret_cast<const T*>(data_[column]), static_cast<size_t>(bytes(column)) / sizeof(T)};
}

}  // namespace lockstep
