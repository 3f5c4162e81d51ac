// Evaluation metrics. They are sums and counts over samples in the order in which they were added, and
// rankings, which do not depend on the order at all: the same samples give the same bits, however they were
// cut into batches.
//
// What is undefined is NaN (a mean of nothing, the AUC of one class, the R2 of equal labels), except that
// precision, recall and F1 of no true positive are 0.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct LossSum {
  double loss = 0;
  int64_t count = 0;

  // One microbatch: the loss summed over it, and how many tokens or samples it counts.
  void add(double batch_loss, int64_t batch_count);
  double mean() const;
  double perplexity() const;  // e^mean
};

// Two classes, as counts of what was predicted and what was true.
struct BinaryCounts {
  int64_t true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;

  double accuracy() const;
  double precision() const;
  double recall() const;
  double f1() const;

  bool operator==(const BinaryCounts&) const = default;
};

// One of many classes. Labels of kIgnoredLabel are left out.
struct ClassCounts {
  int64_t right = 0;
  int64_t count = 0;

  void add(std::span<const int32_t> predicted, std::span<const int32_t> labels);
  double accuracy() const;
};

// The same by class, for models with few of them. Classes count from 0.
class ClassConfusion {
 public:
  void add(std::span<const int32_t> predicted, std::span<const int32_t> labels);
  // The class with the highest of a row's logits, the first of several, as argmax has it.
  void add_logits(std::span<const float> logits, int64_t classes, std::span<const int32_t> labels);

  double accuracy() const { return counts_.accuracy(); }
  // The mean of the F1 of every class that is a label or a prediction.
  double macro_f1() const;
  // Of the rows added as logits: the mean of -log(softmax(logits)[label]).
  double log_loss() const { return log_loss_.mean(); }

 private:
  struct OfClass {
    int64_t right = 0, labels = 0, predictions = 0;
  };
  OfClass& of(int32_t number);

  ClassCounts counts_;
  LossSum log_loss_;
  std::vector<OfClass> classes_;
};

// Numbers that were predicted, beside what they should be, in units of `deviation`.
class ValueErrors {
 public:
  explicit ValueErrors(double deviation = 1) : deviation_(deviation) {}

  void add(std::span<const float> predicted, std::span<const float> labels);
  double mae() const;
  double rmse() const;
  // 1 - (sum of squared errors) / (sum of squared differences of the labels from their mean).
  double r2() const;

 private:
  double squared() const;

  double deviation_;
  std::vector<double> errors_, labels_;
};

struct BestF1 {
  double f1 = 0;
  float threshold = 0;
};

// The scores (logits or probabilities; larger means more likely positive) and labels of an evaluation.
class BinaryScores {
 public:
  // A label above 0.5 is positive.
  void add(std::span<const float> scores, std::span<const float> labels);
  void add(float score, bool positive);

  int64_t count() const { return static_cast<int64_t>(samples_.size()); }
  int64_t positives() const { return positives_; }

  // A sample is predicted positive if its score is at least the threshold; one that is NaN never is.
  BinaryCounts at(float threshold) const;
  // Area under the ROC curve: the share of pairs of a positive and a negative in which the positive has the
  // higher score, a tie counting half. Counted exactly in integers. NaN if a score is.
  double auc() const;
  // Area under the precision-recall curve as average precision: the sum over the distinct scores from the top
  // of the precision there times the recall that is gained. NaN if a score is, and without positives.
  double pr_auc() const;
  // Where scores are logits: the mean of -log of the probability that each sample's label has.
  double log_loss() const;
  // The best F1 over all thresholds, and the highest threshold that reaches it. NaN if a score is.
  BestF1 best_f1() const;

 private:
  struct Sample {
    float score;
    bool positive;
  };
  // Samples of one score, counted.
  struct Group {
    float score = 0;
    int64_t positives = 0, negatives = 0;
  };
  std::vector<Group> groups_from_the_top() const;

  std::vector<Sample> samples_;
  int64_t positives_ = 0;
  bool has_nan_ = false;
};

}  // namespace lockstep
