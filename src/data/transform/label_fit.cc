#include "data/transform/label_fit.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/format/value_text.h"

namespace lockstep {

std::string ClassWeights::text() const {
  if (balanced) return "balanced";
  std::string text;
  for (const auto& [label, weight] : of) text += fmt::format("{}:{}={} ", label.size(), label, weight);
  return text;
}

void LabelSummary::count(double number, int64_t times) {
  numbers_[number] += times;
  forget_many();
}

void LabelSummary::count(std::string_view text, int64_t times) {
  const auto found = texts_.find(text);
  if (found != texts_.end())
    found->second += times;
  else
    texts_.emplace(text, times);
  forget_many();
}

void LabelSummary::forget_many() {
  if (static_cast<int64_t>(numbers_.size() + texts_.size()) <= kMostClasses) return;
  many_ = true;
  numbers_.clear();
  texts_.clear();
}

void LabelSummary::add(const LabelEncoding& encoding, const BlockColumn& column, size_t records) {
  std::vector<double> values;
  for_each_label(encoding, column, records, [&](size_t, double value, std::string_view text) {
    if (encoding.kind == LabelKind::kTexts) {
      if (!many_) count(text, 1);
      return;
    }
    values.push_back(value);
    whole_ = whole_ && value == std::floor(value);
    if (!many_) count(value, 1);
  });
  records_ += static_cast<int64_t>(records);
  moments_.merge(moments_of(values));
}

void LabelSummary::merge(const LabelSummary& next) {
  records_ += next.records_;
  whole_ = whole_ && next.whole_;
  moments_.merge(next.moments_);
  many_ = many_ || next.many_;
  if (!many_) {
    for (const auto& [number, times] : next.numbers_)
      if (!many_) count(number, times);
    for (const auto& [text, times] : next.texts_)
      if (!many_) count(text, times);
  }
  if (many_) {
    numbers_.clear();
    texts_.clear();
  }
}

namespace {

class Fit {
 public:
  Fit(LabelTask asked, const ClassWeights& weights, const LabelEncoding& read, const LabelSummary& summary)
      : asked_(asked), weights_(weights), summary_(summary), fitted_{read, {}, {}} {
    for (const auto& [number, times] : summary.numbers()) counts_.push_back(times);
    for (const auto& [text, times] : summary.texts()) counts_.push_back(times);
  }

  FittedLabels run() {
    LabelEncoding& labels = fitted_.encoding;
    labels.task = asked_ == LabelTask::kAuto ? decide() : asked_;
    if (labels.task == LabelTask::kRegression)
      standardise();
    else
      number_classes();
    add_weights();
    std::string why = asked_ == LabelTask::kAuto ? reason() : "as model.task says";
    fitted_.decision = fmt::format("{}: {}, {}", labels.column, what(), why);
    warn();
    return std::move(fitted_);
  }

 private:
  int64_t different() const { return static_cast<int64_t>(counts_.size()); }
  bool texts() const { return fitted_.encoding.kind == LabelKind::kTexts; }
  // Values that are there twice on average: what hardly repeats is a measurement, or a name of its record.
  bool repeat() const { return !summary_.many() && different() * 2 <= summary_.records(); }

  LabelTask decide() const {
    const LabelEncoding& labels = fitted_.encoding;
    if (labels.kind == LabelKind::kZeroOne) return LabelTask::kBinary;
    if (different() == 2) return LabelTask::kBinary;
    if (texts()) {
      if (different() > 2 && !repeat()) refuse_names();
      if (summary_.many()) refuse_many();
      return LabelTask::kClassification;
    }
    const bool few = summary_.whole() && different() > 2 && different() <= kFewNumbers && repeat();
    return few ? LabelTask::kClassification : LabelTask::kRegression;
  }

  void standardise() {
    const Moments& moments = summary_.moments();
    fitted_.encoding.mean = moments.mean;
    fitted_.encoding.deviation = moments.deviation() > 0 ? moments.deviation() : 1.0;
  }

  void number_classes() {
    LabelEncoding& labels = fitted_.encoding;
    if (summary_.many()) refuse_many();
    const bool binary = labels.task == LabelTask::kBinary;
    if (binary && holds_zero_and_one_alone()) {
      labels.kind = LabelKind::kZeroOne;
      counts_ = {times_of(0), times_of(1)};
      return;
    }
    for (const auto& [number, times] : summary_.numbers()) {
      labels.numbers.push_back(number);
      labels.classes.push_back(fmt::format("{}", number));
    }
    for (const auto& [text, times] : summary_.texts()) {
      if (!is_utf8(text))
        throw UserError("the label '{}' has texts that are not valid UTF-8; write them as UTF-8",
                        labels.column);
      labels.classes.push_back(text);
    }
    if (binary && different() != 2)
      throw UserError(
          "the label '{}' has {} different values ({}), and model.task is binary; write model.task: {}",
          labels.column, different(), list_of_labels(labels.classes),
          texts() ? "classification" : "classification or regression");
  }

  bool holds_zero_and_one_alone() const {
    return !texts() && std::all_of(summary_.numbers().begin(), summary_.numbers().end(),
                                   [](const auto& entry) { return entry.first == 0 || entry.first == 1; });
  }

  int64_t times_of(double number) const {
    const auto found = summary_.numbers().find(number);
    return found == summary_.numbers().end() ? 0 : found->second;
  }

  void add_weights() {
    LabelEncoding& labels = fitted_.encoding;
    if (weights_.empty()) return;
    if (labels.task == LabelTask::kRegression)
      throw UserError("train.class_weights is for classes, and the label '{}' is a number; use data.weight",
                      labels.column);
    const std::vector<std::string> names = labels.names();
    labels.weights.assign(names.size(), 1.0);
    const auto records = static_cast<double>(summary_.records());
    for (size_t i = 0; weights_.balanced && i < names.size(); ++i)
      if (counts_[i] > 0)
        labels.weights[i] = records / (static_cast<double>(names.size()) * static_cast<double>(counts_[i]));
    for (const auto& [label, weight] : weights_.of) labels.weights[place_of(label, names)] = weight;
    double sum = 0;
    for (size_t i = 0; i < names.size(); ++i) sum += labels.weights[i] * static_cast<double>(counts_[i]);
    if (!(sum > 0))
      throw UserError("train.class_weights leaves every training record without weight; give one label more");
    for (double& weight : labels.weights) weight /= sum / records;
  }

  size_t place_of(const std::string& label, const std::vector<std::string>& names) const {
    const auto same = [&](const std::string& name) {
      if (name == label) return true;
      if (texts()) return false;
      const auto number = parse_number(name);
      return number && (number == parse_number(label) || is_truth(label, *number));
    };
    const auto found = std::find_if(names.begin(), names.end(), same);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
    throw UserError("train.class_weights names '{}', which no training record has as its label; these are {}",
                    label, list_of_labels(names));
  }

  // Whether true or false is written for 1 or 0.
  bool is_truth(const std::string& label, double number) const {
    return fitted_.encoding.kind == LabelKind::kZeroOne && parse_label(label) == static_cast<float>(number);
  }

  std::string what() const {
    const LabelEncoding& labels = fitted_.encoding;
    switch (labels.task) {
      case LabelTask::kRegression: return "regression";
      case LabelTask::kClassification:
        return fmt::format("classification of {}",
                           labels.class_count() == 1 ? "1 class" : fmt::format("{} classes", different()));
      default: break;
    }
    const std::vector<std::string> names = labels.names();
    return labels.classes.empty() ? "binary"
                                  : fmt::format("binary ({} is 0, {} is 1)", list_of_labels({names[0]}),
                                                list_of_labels({names[1]}));
  }

  std::string reason() const {
    const LabelEncoding& labels = fitted_.encoding;
    if (labels.task == LabelTask::kRegression)
      return fmt::format("by its numbers from {} to {}", summary_.moments().smallest,
                         summary_.moments().largest);
    if (labels.classes.empty()) return "by its labels 0 and 1";
    const char* const kind = texts() ? "texts" : summary_.whole() ? "whole numbers" : "numbers";
    return fmt::format("by its {} different {}: {}", different(), kind, list_of_labels(labels.classes));
  }

  void warn() {
    const int64_t seen =
        std::count_if(counts_.begin(), counts_.end(), [](int64_t times) { return times > 0; });
    if (summary_.many() || seen != 1) return;
    const LabelEncoding& labels = fitted_.encoding;
    std::string only = fmt::format("{}", summary_.moments().mean);
    if (labels.task != LabelTask::kRegression)
      for (size_t i = 0; i < counts_.size(); ++i)
        if (counts_[i] > 0) only = list_of_labels({labels.names()[i]});
    fitted_.warning = fmt::format("every training record has the label {} in '{}': there is nothing to learn",
                                  only, labels.column);
  }

  [[noreturn]] void refuse_many() const {
    throw UserError("the label '{}' has more than {} different values, too many for classes{}",
                    fitted_.encoding.column, kMostClasses,
                    texts() ? "; is it another column?" : "; write model.task: regression");
  }
  [[noreturn]] void refuse_names() const {
    throw UserError(
        "the label '{}' has {} different texts in {} records, which hardly repeat; is it another column? "
        "If these are classes, write model.task: classification",
        fitted_.encoding.column, different(), summary_.records());
  }

  LabelTask asked_;
  const ClassWeights& weights_;
  const LabelSummary& summary_;
  FittedLabels fitted_;
  std::vector<int64_t> counts_;  // of the different values; of the classes once these are known
};

}  // namespace

FittedLabels fit_labels(LabelTask asked, const ClassWeights& weights, const LabelEncoding& read,
                        const LabelSummary& summary) {
  return Fit(asked, weights, read, summary).run();
}

}  // namespace lockstep
