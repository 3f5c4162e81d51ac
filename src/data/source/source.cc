#include "data/source/source.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "base/error.h"
#include "base/nearest.h"

namespace lockstep {
namespace {

// Somebody waits for the first batch: clearing large memory 4 kB at a time takes longer. What cannot have
// huge pages does without.
void ask_for_huge_pages(std::byte* memory, size_t bytes) {
  constexpr uintptr_t kHuge = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (address + kHuge - 1) / kHuge * kHuge, end = (address + bytes) / kHuge * kHuge;
  if (begin < end) madvise(memory + (begin - address), end - begin, MADV_HUGEPAGE);
}

}  // namespace

Batch::Batch(std::vector<Column> columns, int64_t records)
    : columns_(std::make_shared<const std::vector<Column>>(std::move(columns))), records_(records) {
  for (size_t i = 0; i < columns_->size(); ++i) {
    const auto size = std::max<size_t>(1, static_cast<size_t>(bytes(i)));
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): no container leaves the zeroing to the system
    owned_.emplace_back(static_cast<std::byte*>(std::calloc(size, 1)));
    if (owned_.back() == nullptr) throw std::bad_alloc();
    ask_for_huge_pages(owned_.back().get(), size);
    data_.push_back(owned_.back().get());
  }
}

Batch Batch::rows(int64_t first, int64_t count) {
  LOCKSTEP_CHECK(first >= 0 && count >= 0 && first + count <= records_, "rows [{}, {}) of a batch of {}",
                 first, first + count, records_);
  Batch part;
  part.columns_ = columns_;
  part.records_ = count;
  for (size_t i = 0; i < data_.size(); ++i)
    part.data_.push_back(data_[i] + first * (bytes(i) / std::max<int64_t>(1, records_)));
  return part;
}

size_t Batch::index_of(std::string_view name) const {
  std::vector<std::string_view> known;
  for (size_t i = 0; i < columns().size(); ++i) {
    if (columns()[i].name == name) return i;
    known.push_back(columns()[i].name);
  }
  throw UserError("the data has no column '{}'; {}", name, suggestion(name, known));
}

void Batch::check_type(size_t column, size_t size) const {
  LOCKSTEP_CHECK(static_cast<int64_t>(size) == size_of(columns()[column].dtype), "column {} is {}",
                 columns()[column].name, name_of(columns()[column].dtype));
}

int64_t bytes_of_record(const std::vector<Column>& columns) {
  int64_t bytes = 0;
  for (const Column& column : columns) bytes += column.shape.numel() * size_of(column.dtype);
  return bytes;
}

void Source::check_fill(std::span<const int64_t> records, const Batch& batch) const {
  LOCKSTEP_CHECK(static_cast<int64_t>(records.size()) == batch.records(), "{} records for a batch of {}",
                 records.size(), batch.records());
  const std::vector<Column> own = columns();
  LOCKSTEP_CHECK(batch.columns().size() == own.size(), "the batch is not of this source");
  for (size_t i = 0; i < own.size(); ++i)
    LOCKSTEP_CHECK(batch.columns()[i].name == own[i].name && batch.columns()[i].shape == own[i].shape,
                   "column {} of the batch is not {}", batch.columns()[i].name, own[i].name);
  const int64_t count = size();
  for (const int64_t record : records)
    LOCKSTEP_CHECK(record >= kNoRecord && record < count, "record {} of {}", record, count);
}

}  // namespace lockstep
