#include "data/transform/column_transform.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

void check_distinct(const std::string& transform, std::string_view key,
                    const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second) throw UserError("transform {}: {} has '{}' twice", transform, key, name);
}

}  // namespace

ColumnTransform::ColumnTransform(TransformSettings& settings, int version, Wanted wanted)
    : transform_(settings.transform()),
      text_(settings.text(version)),
      from_(settings.list("columns")),
      to_(settings.optional_list("as")),
      wanted_(wanted) {
  if (to_.empty()) to_ = from_;
  if (to_.size() != from_.size())
    throw UserError("transform {}: as has {} names for {} columns; give each one", transform_, to_.size(),
                    from_.size());
  check_distinct(transform_, "columns", from_);
  check_distinct(transform_, "as", to_);
}

std::vector<BlockField> ColumnTransform::reads() const {
  std::vector<BlockField> fields;
  for (const std::string& name : from_)
    fields.push_back({name, wanted_ == Wanted::kNumber ? ValueType::kF64 : ValueType::kBytes, 1});
  return fields;
}

void ColumnTransform::check(const BlockField& field) const {
  if (wanted_ == Wanted::kTokens) {
    if (field.type == ValueType::kI32 && field.width != 1) return;
    throw UserError("transform {}: column '{}' holds {}{}, not tokens; tokenise it first", transform_,
                    field.name, name_of(field.type), field.width == 1 ? "" : " lists");
  }
  if (field.width != 1)
    throw UserError("transform {}: column '{}' holds several values in a record, not one", transform_,
                    field.name);
  if (wanted_ == Wanted::kNumber && field.type == ValueType::kBytes)
    throw UserError("transform {}: column '{}' holds text (bytes), not numbers; cast it first", transform_,
                    field.name);
}

std::vector<BlockField> ColumnTransform::output(const std::vector<BlockField>& input) const {
  std::vector<BlockField> made_fields;
  for (size_t i = 0; i < from_.size(); ++i) {
    const BlockField& field = input[index_of(input, from_[i])];
    check(field);
    made_fields.push_back(made(i, field));
    made_fields.back().name = to_[i];
  }
  std::vector<BlockField> fields = input;
  for (BlockField& field : made_fields) put_field(fields, std::move(field));
  return fields;
}

void ColumnTransform::apply(const BlockPlace&, ColumnBlock& block) const {
  std::vector<BlockColumn> columns;
  for (size_t i = 0; i < from_.size(); ++i) {
    columns.emplace_back();
    columns.back().name = to_[i];
    columns.back().missing_texts = block.column(from_[i]).missing_texts;
    make(i, block.column(from_[i]), block, columns.back());
  }
  // Only now, so that [a, b] as [b, a] exchanges them.
  for (BlockColumn& column : columns) put_column(block, std::move(column));
}

}  // namespace lockstep
