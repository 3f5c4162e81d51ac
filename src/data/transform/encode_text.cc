#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/transform/column_values.h"
#include "data/transform/model_inputs.h"

namespace lockstep {
namespace {

// The values of one record.
std::span<const int32_t> row_of(const BlockColumn& column, size_t record) {
  const bool varying = column.width == kVarying;
  const auto begin = !varying      ? record * static_cast<size_t>(column.width)
                     : record == 0 ? 0
                                   : static_cast<size_t>(column.ends[record - 1]);
  const auto end =
      varying ? static_cast<size_t>(column.ends[record]) : begin + static_cast<size_t>(column.width);
  return std::span(column.as<int32_t>()).subspan(begin, end - begin);
}

// What `pad` says about a column; null where it has not made it.
const BlockColumn* visible_column(const ColumnBlock& block, const std::string& name) {
  for (const BlockColumn& column : block.columns)
    if (column.name == name + "_visible" && column.type() == ValueType::kU8) return &column;
  return nullptr;
}

}  // namespace

EncodeText::EncodeText(EncodeTextOptions options) : options_(std::move(options)) {
  if (options_.tokenizer && options_.tokenizer->frame_tokens() >= options_.seq)
    throw UserError(
        "model.seq {} has no room for a text: the tokenizer adds {} tokens of its own; set it to more",
        options_.seq, options_.tokenizer->frame_tokens());
}

std::string EncodeText::text() const {
  std::string text = fmt::format("text 1 {} {} {} column {} label {}", options_.seq, options_.vocab,
                                 options_.classes, options_.column, options_.label);
  if (options_.tokenizer) text += fmt::format(" tokenizer {}", options_.tokenizer->fingerprint());
  return text;
}

std::vector<BlockField> EncodeText::reads() const {
  std::vector<BlockField> fields{{options_.column, ValueType::kBytes, 1}};
  if (reads_label_) fields.push_back({options_.label, ValueType::kBytes, 1});
  return fields;
}

std::shared_ptr<const EncodeText> EncodeText::without_label() const {
  auto unlabelled = std::make_shared<EncodeText>(*this);
  unlabelled->reads_label_ = false;
  return unlabelled;
}

std::vector<Column> EncodeText::columns() const {
  return {{"tokens", DType::kI32, {options_.seq}},
          {"segments", DType::kI32, {options_.seq}},
          {"labels", DType::kI32, {}},
          {"keys_visible", DType::kU8, {options_.seq}}};
}

std::vector<BlockField> EncodeText::output(const std::vector<BlockField>& input) const {
  const BlockField& text = input[index_of(input, options_.column)];
  const bool tokens = text.type == ValueType::kI32 && text.width != 1;
  if (!tokens && (text.type != ValueType::kBytes || text.width != 1))
    throw UserError("column '{}' holds {}, not text or tokens; the encoder cannot read it", options_.column,
                    name_of(text.type));
  if (reads_label_ && input[index_of(input, options_.label)].width != 1)
    throw UserError("column '{}' holds several values in a record; the label must be one", options_.label);
  return {{"tokens", ValueType::kI32, options_.seq},
          {"segments", ValueType::kI32, options_.seq},
          {"labels", ValueType::kI32, 1},
          {"keys_visible", ValueType::kU8, options_.seq}};
}

std::optional<int32_t> EncodeText::class_of(std::string_view label) const {
  const auto number = parse_number(label);
  if (!number || *number != std::floor(*number) || *number < 0 ||
      *number >= static_cast<double>(options_.classes))
    return {};
  return static_cast<int32_t>(*number);
}

std::string EncodeText::label_problem(std::string_view label) const {
  return fmt::format("the label '{}' is '{}'; it must be a whole number below {}, the model's classes",
                     options_.label, label.substr(0, 40), options_.classes);
}

void EncodeText::encode_row(const ColumnBlock& block, size_t record, int32_t* tokens,
                            uint8_t* visible) const {
  const BlockColumn& column = block.column(options_.column);
  const auto seq = static_cast<size_t>(options_.seq);
  size_t length = 0;
  if (column.type() == ValueType::kBytes) {
    const std::string_view text =
        column.is_missing(record) ? std::string_view() : column.as<std::string_view>()[record];
    if (options_.tokenizer) {
      std::vector<int32_t> row;
      options_.tokenizer->encode(text, options_.seq, row);
      length = row.size();
      std::copy(row.begin(), row.end(), tokens);
    } else {
      length = std::min(text.size() + 1, seq);
      for (size_t t = 1; t < length; ++t) tokens[t] = static_cast<unsigned char>(text[t - 1]) + 1;
    }
  } else {
    const std::span<const int32_t> row = row_of(column, record);
    length = std::min(row.size(), seq);
    std::copy_n(row.begin(), length, tokens);
  }
  for (size_t t = 0; t < length; ++t)
    if (tokens[t] < 0 || tokens[t] >= options_.vocab)
      throw BadValue(
          record, fmt::format("column '{}' has the token {}, which is not in the vocabulary of {}; "
                              "{}",
                              options_.column, tokens[t], options_.vocab,
                              options_.tokenizer ? "the tokenizer is not the model's; name the right one as "
                                                   "data.tokenizer"
                                                 : "set model.vocab to more (bytes take 257)"));
  const BlockColumn* marks = visible_column(block, options_.column);
  for (size_t t = 0; t < length; ++t)
    visible[t] =
        marks == nullptr ? uint8_t{1} : marks->as<uint8_t>()[record * static_cast<size_t>(marks->width) + t];
  visible[0] = 1;  // the pooler's
}

void EncodeText::apply(const BlockPlace&, ColumnBlock& block) const {
  const auto records = static_cast<size_t>(block.records), seq = static_cast<size_t>(options_.seq);
  const int32_t pad = options_.tokenizer ? options_.tokenizer->pad() : 0;
  std::vector<int32_t> tokens(records * seq, pad), segments(records * seq), labels(records);
  std::vector<uint8_t> visible(records * seq);
  for (size_t r = 0; r < records; ++r) encode_row(block, r, &tokens[r * seq], &visible[r * seq]);
  if (reads_label_)
    for_each_text(block.column(options_.label), records, [&](size_t r, std::string_view text) {
      const auto found = class_of(text);
      if (!found) throw BadValue(r, label_problem(text));
      labels[r] = *found;
    });
  block.columns.clear();
  block.columns.push_back({"tokens", options_.seq, std::move(tokens)});
  block.columns.push_back({"segments", options_.seq, std::move(segments)});
  block.columns.push_back({"labels", 1, std::move(labels)});
  block.columns.push_back({"keys_visible", options_.seq, std::move(visible)});
}

}  // namespace lockstep
