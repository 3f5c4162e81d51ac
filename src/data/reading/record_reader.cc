#include "data/reading/record_reader.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

BlockField place_field(const std::string& name) {
  return {name, name == kRecordColumn ? ValueType::kI64 : ValueType::kBytes, 1};
}

std::vector<BlockField> place_fields(const std::vector<std::string>& names) {
  std::vector<BlockField> fields;
  for (const std::string& name : names) {
    if (name != kRecordColumn && name != kPlaceColumn)
      throw UserError("these records have no column '{}'; use {} or {}", name, kRecordColumn, kPlaceColumn);
    fields.push_back(place_field(name));
  }
  return fields;
}

void fill_places(const std::vector<BlockField>& fields, int64_t first, int64_t count,
                 const RecordPlace& place, RecordScratch& into) {
  into.own.reset(fields);
  into.own.records = count;
  for (BlockColumn& column : into.own.columns) {
    if (column.name == kRecordColumn) {
      column.as<int64_t>().resize(static_cast<size_t>(count));
      std::iota(column.as<int64_t>().begin(), column.as<int64_t>().end(), first);
      continue;
    }
    into.texts.clear();
    for (int64_t r = 0; r < count; ++r) into.texts.push_back(place(first + r));
    column.as<std::string_view>().assign(into.texts.begin(), into.texts.end());
  }
}

class ShardRecords : public RecordReader {
 public:
  ShardRecords(std::shared_ptr<const ShardSet> shards, Transforms transforms, std::vector<Column> columns,
               std::shared_ptr<const ShardSet> written, const std::vector<std::string>& own, int64_t budget,
               RecordPlace place)
      : RecordReader(std::move(columns), written ? written->fields() : place_fields(own)),
        shards_(std::move(shards)),
        transforms_(std::move(transforms)),
        written_(std::move(written)),
        place_(std::move(place)),
        memory_(std::make_shared<ByteBudget>(budget)) {
    shards_->format().use_memory(memory_);
    if (written_) written_->format().use_memory(memory_);
    if (!place_) place_ = [set = shards_](int64_t record) { return set->describe(record); };
    LOCKSTEP_CHECK(!written_ || written_->records() == shards_->records(), "{} records beside {}",
                   written_->records(), shards_->records());
    // What the transforms make of these columns must be what the model takes.
    std::vector<BlockField> fields = shards_->fields();
    for (const auto& transform : transforms_) fields = transform->output(fields);
    for (const Column& column : this->columns()) index_of(fields, column.name);
  }

  int64_t size() const override { return shards_->records(); }

  void read(int64_t first, int64_t count, RecordScratch& into) const override {
    StageCounters counters;
    shards_->load(first, count, into.decoded, counters);
    ColumnBlock& block = into.decoded.block;
    try {
      for (const auto& transform : transforms_) transform->apply({0, 0, first}, block);
    } catch (const BadValue& bad) {
      throw UserError("{}: {}", shards_->describe(first + static_cast<int64_t>(bad.row())), bad.what());
    }
    into.records = count;
    into.inputs.clear();
    for (const Column& column : columns()) into.inputs.push_back(rows_of(block, column, count));
    if (!written_) return fill_places(own(), first, count, place_, into);
    written_->load(first, count, into.written, counters);
    std::swap(into.own, into.written.block);
  }

 private:
  static const void* rows_of(const ColumnBlock& block, const Column& column, int64_t count) {
    return std::visit(
        [&](const auto& values) -> const void* {
          const auto bytes = static_cast<int64_t>(values.size() * sizeof(values[0]));
          LOCKSTEP_CHECK(bytes == count * column.shape.numel() * size_of(column.dtype),
                         "column {} has {} bytes for {} records", column.name, bytes, count);
          return values.data();
        },
        block.column(column.name).values);
  }

  std::shared_ptr<const ShardSet> shards_;
  Transforms transforms_;
  std::shared_ptr<const ShardSet> written_;
  RecordPlace place_;
  std::shared_ptr<ByteBudget> memory_;
};

class SourceRecords : public RecordReader {
 public:
  SourceRecords(std::shared_ptr<const Source> source, const std::vector<std::string>& own)
      : RecordReader(source->columns(), place_fields(own)), source_(std::move(source)) {}

  int64_t size() const override { return source_->size(); }

  void read(int64_t first, int64_t count, RecordScratch& into) const override {
    if (!into.batch || into.batch->records() != count) into.batch.emplace(columns(), count);
    std::vector<int64_t> records(static_cast<size_t>(count));
    std::iota(records.begin(), records.end(), first);
    source_->fill(records, *into.batch);
    into.records = count;
    into.inputs.clear();
    for (size_t c = 0; c < columns().size(); ++c) into.inputs.push_back(into.batch->data(c));
    fill_places(
        own(), first, count, [&](int64_t r) { return source_->describe(r); }, into);
  }

 private:
  std::shared_ptr<const Source> source_;
};

}  // namespace

std::unique_ptr<RecordReader> make_record_reader(std::shared_ptr<const ShardSet> shards,
                                                 Transforms transforms, std::vector<Column> columns,
                                                 std::shared_ptr<const ShardSet> written,
                                                 const std::vector<std::string>& own, int64_t budget,
                                                 RecordPlace place) {
  return std::make_unique<ShardRecords>(std::move(shards), std::move(transforms), std::move(columns),
                                        std::move(written), own, budget, std::move(place));
}

std::unique_ptr<RecordReader> make_record_reader(std::shared_ptr<const Source> source,
                                                 const std::vector<std::string>& own) {
  return std::make_unique<SourceRecords>(std::move(source), own);
}

}  // namespace lockstep
