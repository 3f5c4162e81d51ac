// Evaluation metrics. They are sums and counts over samples in the order in which they were added, and
// rankings, which do not depend on the order at all: the same samples give the same bits.
//
// What is undefined is NaN (a mean of nothing, the AUC of one class), except that precision, recall and F1 of
// no true positive are 0.
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
