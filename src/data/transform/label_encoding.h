// LabelEncoding: what a table's label means to a model, found in the training records and then applied
// unchanged to every other.
//
//   binary          f32, 0 or 1: the label itself where labels are 0 and 1 (also true and false), otherwise
//                   its place among the two that there are
//   classification  i32: its place among the different labels
//   regression      f32: (label - mean) / deviation
//
// Different labels are in the order of their numbers, or of the bytes of their texts. How they are written is
// seen in the first records: 0 and 1, numbers, or texts. Where nearly all are of one kind, one that is not
// cannot be used, and is told by file and line before the first step. What is decided lies in label_fit.h.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/label_task.h"
#include "data/format/column_block.h"

namespace lockstep {

enum class LabelKind : uint8_t { kZeroOne, kNumbers, kTexts };

struct LabelEncoding {
  std::string column;
  LabelTask task = LabelTask::kAuto;  // kAuto: not fitted yet
  LabelKind kind = LabelKind::kZeroOne;
  // The different labels by their place, and of numbers also these; empty for 0 and 1, and for regression.
  std::vector<std::string> classes = {};
  std::vector<double> numbers = {};
  std::vector<double> weights = {};  // of the classes, with a mean of 1 over the training records; or empty
  double mean = 0, deviation = 1;    // of regression

  bool operator==(const LabelEncoding&) const = default;
  int64_t class_count() const { return classes.empty() ? 2 : static_cast<int64_t>(classes.size()); }
  // What each place stands for; empty for regression.
  std::vector<std::string> names() const;
  // One line with all of it: the file labels.json of a run.
  std::string json() const;
};

// The way back from json(). Throws UserError that begins with `name`.
LabelEncoding labels_from_json(std::string_view text, const std::string& name);

// How the labels of a table's first records are written, where a task is asked for.
LabelKind kind_of_labels(const BlockColumn& column, size_t records, LabelTask asked);

// Every label of a block that can be used, as take(record, value, text): the value is its place, or the
// number where places are not known yet; the text is given where labels are texts. Throws BadValue for
// others.
using TakeLabel = std::function<void(size_t record, double value, std::string_view text)>;
void for_each_label(const LabelEncoding& encoding, const BlockColumn& column, size_t records,
                    const TakeLabel& take);

// The labels of a block as the model takes them; throws BadValue.
void encode_labels(const LabelEncoding& encoding, const BlockColumn& column, size_t records,
                   std::vector<float>& out);
void encode_classes(const LabelEncoding& encoding, const BlockColumn& column, size_t records,
                    std::vector<int32_t>& out);
// One byte for each record: whether the encoding, or before it is fitted the kind, has a use for its label;
// and what is wrong with one that cannot be used.
std::vector<uint8_t> usable_labels(const LabelEncoding& encoding, const BlockColumn& column, size_t records);
std::string label_problem(const LabelEncoding& encoding, const BlockColumn& column, size_t record);

// "a, b, c and 4 more", each in one line.
std::string list_of_labels(const std::vector<std::string>& labels);

// 0 and 1, true and false.
std::optional<float> parse_label(std::string_view field);

}  // namespace lockstep
