// Fits a LabelEncoding to the labels of the training records: which task they ask for, which classes there
// are, what each of them counts in the loss, or how numbers are standardised.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/transform/label_encoding.h"
#include "data/transform/statistics.h"

namespace lockstep {

// More different labels than this are no classes.
inline constexpr int64_t kMostClasses = 10000;
// Up to so many different whole numbers are taken for classes, unless the job says what they are.
inline constexpr int64_t kFewNumbers = 20;

// How much the records of a label count in the loss.
struct ClassWeights {
  bool balanced = false;                                // records / (classes * records of the class)
  std::vector<std::pair<std::string, double>> of = {};  // label, weight; others have 1

  bool empty() const { return !balanced && of.empty(); }
  std::string text() const;  // all of it, for keys of what is kept
};

// What the labels of the training records are, block by block.
class LabelSummary {
 public:
  // Throws BadValue for a label that the kind does not allow.
  void add(const LabelEncoding& encoding, const BlockColumn& column, size_t records);
  void merge(const LabelSummary& next);

  int64_t records() const { return records_; }
  // The different ones, and how often each is there.
  const std::map<double, int64_t>& numbers() const { return numbers_; }
  const std::map<std::string, int64_t, std::less<>>& texts() const { return texts_; }
  bool many() const { return many_; }  // more than kMostClasses: they are not counted any more
  bool whole() const { return whole_; }
  const Moments& moments() const { return moments_; }  // of numbers

 private:
  void count(double number, int64_t times);
  void count(std::string_view text, int64_t times);
  void forget_many();

  int64_t records_ = 0;
  std::map<double, int64_t> numbers_;
  std::map<std::string, int64_t, std::less<>> texts_;
  bool many_ = false;
  bool whole_ = true;
  Moments moments_;
};

struct FittedLabels {
  LabelEncoding encoding;
  // For people: "species: classification of 3 classes, by its texts: a, b, c".
  std::string decision;
  std::string warning = {};  // empty: none
};

// `read` has the column and the kind of its labels. Throws UserError where they do not suit the task that is
// asked for, or no task at all.
FittedLabels fit_labels(LabelTask asked, const ClassWeights& weights, const LabelEncoding& read,
                        const LabelSummary& summary);

}  // namespace lockstep
