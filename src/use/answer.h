// What a model answers about a record, by its task: which outputs of its evaluation graph that takes, and the
// columns it is written as. This is the one place that knows.
//
//   binary       probability of yes, which is the label 1 or the second of two others; with a threshold also
//                decision, one of the two
//   classify     class, its probability, and a probability for each class
//   regress      value, in the units of the label
//   next token   loss (the mean over the record's tokens) and tokens (how many the loss counts)
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "data/format/column_block.h"
#include "model/model.h"
#include "runtime/executable.h"

namespace lockstep {

struct AnswerOptions {
  std::vector<std::string> classes = {};  // names in the order of the labels; none: 0, 1, ...
  bool each_class = true;                 // whether every class gets a column
  std::optional<double> threshold = {};   // from which probability on a binary answer is yes
};

class Answer {
 public:
  // Of an evaluation graph. Throws UserError for options that do not go with the task.
  Answer(const Model& model, AnswerOptions options);

  // The records that a graph must be built for, where that is not for the caller to choose: the loss of a
  // graph is that of its whole batch.
  static std::optional<int64_t> records_at_once(Task task);
  // The graph with no outputs but those that the answer needs.
  static Model only_answer(Model model);

  const std::vector<BlockField>& fields() const { return fields_; }
  // Appends what was computed about the first `records` of a batch to columns of these fields.
  void append(Backend& backend, const Executable& computed, int64_t records,
              std::vector<BlockColumn>& columns) const;

 private:
  void append_binary(const std::vector<float>& logits, std::vector<BlockColumn>& columns) const;
  void append_classes(const std::vector<float>& logits, int64_t records,
                      std::vector<BlockColumn>& columns) const;
  void append_class(size_t place, BlockColumn& column) const;

  Task task_;
  int64_t classes_ = 0;
  TargetScale target_;
  AnswerOptions options_;
  std::vector<BlockField> fields_;
};

// The logits that an evaluation graph of classes answers with, or that its answer is the argmax of.
Value logits_in(const Graph& graph);
double probability_of(float logit);
// Softmax of some logits, in double.
void probabilities_of(const float* logits, size_t count, std::vector<double>& probabilities);

}  // namespace lockstep
