#include "data/source.h"

#include "base/error.h"
#include "base/nearest.h"

namespace lockstep {

Batch::Batch(std::vector<Column> columns, int64_t records) : columns_(std::move(columns)), records_(records) {
  for (const Column& column : columns_)
    buffers_.emplace_back(static_cast<size_t>(records * column.shape.numel() * size_of(column.dtype)));
}

size_t Batch::index_of(std::string_view name) const {
  std::vector<std::string_view> known;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name == name) return i;
    known.push_back(columns_[i].name);
  }
  throw UserError("the data has no column '{}'; {}", name, suggestion(name, known));
}

void Batch::check_type(size_t column, size_t size) const {
  LOCKSTEP_CHECK(static_cast<int64_t>(size) == size_of(columns_[column].dtype), "column {} is {}",
                 columns_[column].name, name_of(columns_[column].dtype));
}

void Source::check_fill(std::span<const int64_t> records, const Batch& batch) const {
  LOCKSTEP_CHECK(static_cast<int64_t>(records.size()) == batch.records(), "{} records for a batch of {}",
                 records.size(), batch.records());
  const std::vector<Column> own = columns();
  LOCKSTEP_CHECK(batch.columns().size() == own.size(), "the batch is not of this source");
  for (size_t i = 0; i < own.size(); ++i)
    LOCKSTEP_CHECK(batch.columns()[i].name == own[i].name && batch.columns()[i].shape == own[i].shape,
                   "column {} of the batch is not {}", batch.columns()[i].name, own[i].name);
  for (const int64_t record : records)
    LOCKSTEP_CHECK(record >= kNoRecord && record < size(), "record {} of {}", record, size());
}

}  // namespace lockstep
