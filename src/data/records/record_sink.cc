#include "data/records/record_sink.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "data/format/missing_texts.h"
#include "data/format/value_text.h"

namespace lockstep {
namespace {

constexpr double kExactWhole = 9007199254740992;
constexpr size_t kArenaChunk = 4096;
constexpr std::string_view kDigits = "0123456789";

template <typename T>
bool fits(int64_t value) {
  return value >= int64_t{std::numeric_limits<T>::min()} && value <= int64_t{std::numeric_limits<T>::max()};
}

void append_nothing(BlockColumn& column, size_t count) {
  std::visit([&](auto& values) { values.resize(values.size() + count); }, column.values);
}

}  // namespace

RecordSink::RecordSink(ColumnBlock& block, int64_t records) : block_(block), record_(block.records) {
  cells_.reserve(block.columns.size());
  for (BlockColumn& column : block.columns) {
    const bool plain_real = column.type() == ValueType::kF64 && column.width == 1;
    cells_.push_back({&column, plain_real ? &column.as<double>() : nullptr, column.type(), column.width});
    const auto each = static_cast<size_t>(std::max<int64_t>(column.width, 1));
    std::visit([&](auto& values) { values.reserve(values.size() + static_cast<size_t>(records) * each); },
               column.values);
  }
}

int RecordSink::column_named(std::string_view key) const {
  for (size_t i = 0; i < cells_.size(); ++i)
    if (cells_[i].column->name == key) return static_cast<int>(i);
  return kUnwanted;
}

int RecordSink::look_up(size_t slot, std::string_view key) {
  const int found = column_named(key);
  // Keys of records that have nothing in common must not pile up.
  constexpr size_t kMostGuesses = 4096;
  if (slot >= guesses_.size() && slot < kMostGuesses) guesses_.resize(slot + 1);
  if (slot < guesses_.size()) guesses_[slot] = {key, found};
  return found;
}

void RecordSink::refuse(const Cell& cell, std::string_view value, std::string_view wanted) {
  throw RecordProblem(
      fmt::format("column '{}' has '{}', which is not {}", cell.column->name, value.substr(0, 40), wanted));
}

std::string_view RecordSink::kept(std::string_view text) {
  if (text.size() > arena_left_) {
    auto chunk = std::make_shared<std::string>(std::max(kArenaChunk, text.size()), '\0');
    arena_ = chunk->data();
    arena_left_ = chunk->size();
    block_.keep.push_back(std::move(chunk));
  }
  if (!text.empty()) std::memcpy(arena_, text.data(), text.size());
  const std::string_view copy(arena_, text.size());
  arena_ += text.size();
  arena_left_ -= text.size();
  return copy;
}

void RecordSink::begin_cell(int column) {
  Cell& at = cell(column);
  if (at.record == record_)
    throw RecordProblem(fmt::format("'{}' is there twice; keep one of them", at.column->name));
  at.record = record_;
  at.count = 0;
  at.missing = false;
  ++filled_;
}

void RecordSink::add_whole(int column, int64_t value) {
  Cell& at = cell(column);
  ++at.count;
  const auto out_of_range = [&] {
    refuse(at, std::to_string(value), fmt::format("in the range of {}", name_of(at.type)));
  };
  switch (at.type) {
    case ValueType::kU8:
      if (!fits<uint8_t>(value)) out_of_range();
      at.column->as<uint8_t>().push_back(static_cast<uint8_t>(value));
      return;
    case ValueType::kI32:
      if (!fits<int32_t>(value)) out_of_range();
      at.column->as<int32_t>().push_back(static_cast<int32_t>(value));
      return;
    case ValueType::kI64: at.column->as<int64_t>().push_back(value); return;
    case ValueType::kF32: at.column->as<float>().push_back(static_cast<float>(value)); return;
    case ValueType::kF64: at.column->as<double>().push_back(static_cast<double>(value)); return;
    case ValueType::kBytes: {
      const bool digit = value >= 0 && value <= 9;
      at.column->as<std::string_view>().push_back(digit ? kDigits.substr(static_cast<size_t>(value), 1)
                                                        : kept(std::to_string(value)));
      return;
    }
  }
}

void RecordSink::add_real(int column, double value) {
  Cell& at = cell(column);
  if (std::isnan(value) && at.width == 1) {
    at.missing = true;
    ++at.count;
    return;
  }
  if (!(std::fabs(value) <= kLargestNumber) && at.width == 1)
    refuse(at, fmt::format("{}", value), "a number of at most 1e30");
  switch (at.type) {
    case ValueType::kF32: at.column->as<float>().push_back(static_cast<float>(value)); break;
    case ValueType::kF64: at.column->as<double>().push_back(value); break;
    case ValueType::kBytes: at.column->as<std::string_view>().push_back(kept(category_text(value))); break;
    default:
      if (!(std::fabs(value) <= kExactWhole) || value != std::floor(value))
        refuse(at, fmt::format("{}", value), "a whole number");
      add_whole(column, static_cast<int64_t>(value));
      return;
  }
  ++at.count;
}

void RecordSink::add_floats(int column, std::string_view bytes) {
  Cell& at = cell(column);
  const size_t count = bytes.size() / sizeof(float);
  if (at.type == ValueType::kF32 && at.width != 1) {
    std::vector<float>& values = at.column->as<float>();
    const size_t before = values.size();
    values.resize(before + count);
    if (count > 0) std::memcpy(values.data() + before, bytes.data(), count * sizeof(float));
    at.count += static_cast<int64_t>(count);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    if (at.type == ValueType::kBytes)
      add_text(column, category_text(value), true);
    else
      add_real(column, static_cast<double>(value));
  }
}

void RecordSink::add_text(int column, std::string_view text, bool copied) {
  Cell& at = cell(column);
  if (at.type == ValueType::kBytes) {
    at.column->as<std::string_view>().push_back(copied ? kept(text) : text);
    ++at.count;
    return;
  }
  if (at.width == 1 && missing_texts(*at.column).has_for_number(text)) {
    at.missing = true;
    ++at.count;
    return;
  }
  if (at.type == ValueType::kF32 || at.type == ValueType::kF64) {
    const auto value = parse_number(text);
    if (!value)
      throw RecordProblem(
          fmt::format("column '{}' has '{}', {}", at.column->name, text.substr(0, 40), not_a_number(text)));
    add_real(column, *value);
  } else {
    const auto value = integer_of(text);
    if (!value) refuse(at, text, "a whole number");
    add_whole(column, *value);
  }
}

void RecordSink::set_missing(int column) { cell(column).missing = true; }

void RecordSink::mark_missing(Cell& cell) {
  const auto width = static_cast<size_t>(std::max<int64_t>(cell.width, 0));
  append_nothing(*cell.column, width);
  cell.column->missing.resize(static_cast<size_t>(record_));
  cell.column->missing.push_back(1);
}

void RecordSink::end_cell(int column) {
  Cell& at = cell(column);
  if (at.width == kVarying) {
    if (at.missing) mark_missing(at);
    const std::vector<int64_t>& ends = at.column->ends;
    at.column->ends.push_back((ends.empty() ? 0 : ends.back()) + at.count);
    return;
  }
  if (at.count == at.width && !at.missing) return;
  if (at.count != 0 && at.count != at.width)
    throw RecordProblem(
        fmt::format("column '{}' has {} values, but {} are wanted", at.column->name, at.count, at.width));
  mark_missing(at);
}

void RecordSink::end_record() {
  if (filled_ < cells_.size()) {
    for (Cell& at : cells_) {
      if (at.record == record_) continue;
      at.count = 0;
      mark_missing(at);
      if (at.width == kVarying)
        at.column->ends.push_back(at.column->ends.empty() ? 0 : at.column->ends.back());
    }
  }
  filled_ = 0;
  ++record_;
  ++block_.records;
}

void RecordSink::finish() {
  for (Cell& at : cells_)
    if (!at.column->missing.empty()) at.column->missing.resize(static_cast<size_t>(block_.records));
}

}  // namespace lockstep
