#include "train/evaluate/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/portable_math.h"
#include "data/source/source.h"

namespace lockstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Up to here products of two counts fit into 64 bits.
constexpr int64_t kMaxSamples = int64_t{1} << 31;

double share(int64_t part, int64_t whole, double of_nothing) {
  return whole == 0 ? of_nothing : static_cast<double>(part) / static_cast<double>(whole);
}

// -log(softmax(row)[label]): what the highest logit is above that of the label, and log(1 + the others' share
// of it).
double log_loss_of(std::span<const float> row, size_t highest, size_t label) {
  double others = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double below = static_cast<double>(row[i]) - static_cast<double>(row[highest]);
    if (std::isnan(below)) return kNan;
    if (i != highest) others += portable_exp(below);
  }
  return static_cast<double>(row[highest]) - static_cast<double>(row[label]) + portable_log1p(others);
}

}  // namespace

void LossSum::add(double batch_loss, int64_t batch_count) {
  loss += batch_loss;
  count += batch_count;
}

double LossSum::mean() const { return count == 0 ? kNan : loss / static_cast<double>(count); }

double LossSum::perplexity() const {
  const double power = mean();
  if (std::isnan(power)) return kNan;
  return power > 700 ? std::numeric_limits<double>::infinity() : portable_exp(power);
}

void ClassCounts::add(std::span<const int32_t> predicted, std::span<const int32_t> labels) {
  LOCKSTEP_CHECK(predicted.size() == labels.size(), "{} predictions and {} labels", predicted.size(),
                 labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnoredLabel) continue;
    right += predicted[i] == labels[i];
    count += 1;
  }
}

double ClassCounts::accuracy() const { return share(right, count, kNan); }

ClassConfusion::OfClass& ClassConfusion::of(int32_t number) {
  const auto place = static_cast<size_t>(number);
  if (place >= classes_.size()) classes_.resize(place + 1);
  return classes_[place];
}

void ClassConfusion::add(std::span<const int32_t> predicted, std::span<const int32_t> labels) {
  counts_.add(predicted, labels);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnoredLabel) continue;
    of(labels[i]).labels += 1;
    of(labels[i]).right += predicted[i] == labels[i];
    of(predicted[i]).predictions += 1;
  }
}

void ClassConfusion::add_logits(std::span<const float> logits, int64_t classes,
                                std::span<const int32_t> labels) {
  const auto width = static_cast<size_t>(classes);
  LOCKSTEP_CHECK(logits.size() == labels.size() * width, "{} logits of {} classes for {} labels",
                 logits.size(), classes, labels.size());
  std::vector<int32_t> predicted;
  for (size_t r = 0; r < labels.size(); ++r) {
    const std::span<const float> row = logits.subspan(r * width, width);
    const auto highest = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    predicted.push_back(static_cast<int32_t>(highest));
    if (labels[r] != kIgnoredLabel)
      log_loss_.add(log_loss_of(row, highest, static_cast<size_t>(labels[r])), 1);
  }
  add(predicted, labels);
}

double ClassConfusion::macro_f1() const {
  double sum = 0;
  int64_t seen = 0;
  for (const OfClass& one : classes_) {
    if (one.labels + one.predictions == 0) continue;
    sum += share(2 * one.right, one.labels + one.predictions, 0);
    seen += 1;
  }
  return seen == 0 ? kNan : sum / static_cast<double>(seen);
}

void ValueErrors::add(std::span<const float> predicted, std::span<const float> labels) {
  LOCKSTEP_CHECK(predicted.size() == labels.size(), "{} predictions and {} labels", predicted.size(),
                 labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    errors_.push_back(static_cast<double>(predicted[i]) - static_cast<double>(labels[i]));
    labels_.push_back(static_cast<double>(labels[i]));
  }
}

double ValueErrors::mae() const {
  double sum = 0;
  for (const double error : errors_) sum += std::fabs(error);
  return errors_.empty() ? kNan : deviation_ * sum / static_cast<double>(errors_.size());
}

double ValueErrors::squared() const {
  double sum = 0;
  for (const double error : errors_) sum += error * error;
  return sum;
}

double ValueErrors::rmse() const {
  return errors_.empty() ? kNan : deviation_ * std::sqrt(squared() / static_cast<double>(errors_.size()));
}

double ValueErrors::r2() const {
  double mean = 0, spread = 0;
  for (const double label : labels_) mean += label;
  mean /= static_cast<double>(labels_.size());
  for (const double label : labels_) spread += (label - mean) * (label - mean);
  return spread > 0 ? 1 - squared() / spread : kNan;
}

double BinaryCounts::accuracy() const {
  const int64_t right = true_positive + true_negative;
  return share(right, right + false_positive + false_negative, kNan);
}

double BinaryCounts::precision() const { return share(true_positive, true_positive + false_positive, 0); }

double BinaryCounts::recall() const { return share(true_positive, true_positive + false_negative, 0); }

double BinaryCounts::f1() const {
  return share(2 * true_positive, 2 * true_positive + false_positive + false_negative, 0);
}

void BinaryScores::add(std::span<const float> scores, std::span<const float> labels) {
  LOCKSTEP_CHECK(scores.size() == labels.size(), "{} scores and {} labels", scores.size(), labels.size());
  for (size_t i = 0; i < scores.size(); ++i) add(scores[i], labels[i] > 0.5f);
}

void BinaryScores::add(float score, bool positive) {
  LOCKSTEP_CHECK(count() < kMaxSamples, "more than {} samples", kMaxSamples);
  samples_.push_back({score, positive});
  positives_ += positive;
  has_nan_ = has_nan_ || std::isnan(score);
}

BinaryCounts BinaryScores::at(float threshold) const {
  BinaryCounts counts;
  for (const Sample& sample : samples_) {
    const bool predicted = sample.score >= threshold;
    int64_t& cell = sample.positive ? (predicted ? counts.true_positive : counts.false_negative)
                                    : (predicted ? counts.false_positive : counts.true_negative);
    cell += 1;
  }
  return counts;
}

std::vector<BinaryScores::Group> BinaryScores::groups_from_the_top() const {
  std::vector<Sample> sorted = samples_;
  std::sort(sorted.begin(), sorted.end(), [](const Sample& a, const Sample& b) { return a.score > b.score; });
  std::vector<Group> groups;
  for (const Sample& sample : sorted) {
    if (groups.empty() || groups.back().score != sample.score) groups.push_back({sample.score, 0, 0});
    (sample.positive ? groups.back().positives : groups.back().negatives) += 1;
  }
  return groups;
}

double BinaryScores::auc() const {
  const int64_t negatives = count() - positives_;
  if (has_nan_ || positives_ == 0 || negatives == 0) return kNan;
  uint64_t half_pairs = 0;  // two for a pair in order, one for a tie
  int64_t positives_above = 0;
  for (const Group& group : groups_from_the_top()) {
    half_pairs +=
        static_cast<uint64_t>(group.negatives) * static_cast<uint64_t>(2 * positives_above + group.positives);
    positives_above += group.positives;
  }
  return static_cast<double>(half_pairs) /
         (2.0 * static_cast<double>(positives_) * static_cast<double>(negatives));
}

double BinaryScores::pr_auc() const {
  if (has_nan_ || positives_ == 0) return kNan;
  double area = 0;
  int64_t tp = 0, predicted = 0;
  for (const Group& group : groups_from_the_top()) {
    tp += group.positives;
    predicted += group.positives + group.negatives;
    area += share(group.positives, positives_, 0) * share(tp, predicted, 0);
  }
  return area;
}

double BinaryScores::log_loss() const {
  if (has_nan_) return kNan;
  LossSum sum;
  for (const Sample& sample : samples_) {
    const auto x = static_cast<double>(sample.score);
    // log(1 + e^-x) of a positive one and log(1 + e^x) of a negative one, without overflow.
    const double towards = sample.positive ? -x : x;
    sum.add(std::fmax(towards, 0.0) + portable_log1p(portable_exp(-std::fabs(x))), 1);
  }
  return sum.mean();
}

BestF1 BinaryScores::best_f1() const {
  if (has_nan_ || samples_.empty()) return {kNan, 0};
  // F1 is 2 tp / (predicted + positives); fractions are compared by cross-multiplication, so that ties are
  // ties.
  uint64_t best_tp = 0, best_whole = 1;
  float threshold = std::numeric_limits<float>::infinity();
  int64_t tp = 0, predicted = 0;
  for (const Group& group : groups_from_the_top()) {
    tp += group.positives;
    predicted += group.positives + group.negatives;
    const uint64_t whole = static_cast<uint64_t>(predicted + positives_);
    if (static_cast<uint64_t>(tp) * best_whole <= best_tp * whole) continue;
    best_tp = static_cast<uint64_t>(tp);
    best_whole = whole;
    threshold = group.score;
  }
  return {2.0 * static_cast<double>(best_tp) / static_cast<double>(best_whole), threshold};
}

}  // namespace lockstep
