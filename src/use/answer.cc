#include "use/answer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

std::vector<Value> outputs_for(const Model& model) {
  const auto outputs = model.graph.outputs();
  LOCKSTEP_CHECK(outputs.size() == 3, "{} was not built to evaluate", model.graph.name());
  switch (model.task) {
    case Task::kBinary:
    case Task::kRegress: return {outputs[2].value};
    case Task::kClassify: return {logits_in(model.graph)};
    case Task::kNextToken: return {outputs[0].value, outputs[1].value};
  }
  throw InternalError("no such task");
}

template <typename T>
std::vector<T> download(Backend& backend, const Executable& computed, size_t output) {
  const Type& type = computed.graph().type(computed.graph().outputs()[output].value);
  LOCKSTEP_CHECK(type.bytes() == type.shape.numel() * static_cast<int64_t>(sizeof(T)), "output {} is {}",
                 output, to_string(type));
  std::vector<T> values(static_cast<size_t>(type.shape.numel()));
  backend.download(values.data(), computed.output(output), type.bytes());
  return values;
}

}  // namespace

Value logits_in(const Graph& graph) {
  LOCKSTEP_CHECK(graph.outputs().size() >= 3, "{} was not built to evaluate", graph.name());
  const Value answer = graph.outputs()[2].value;
  if (graph.type(answer).dtype == DType::kF32) return answer;
  const int32_t node = graph.producer(answer);
  const bool chooses = node >= 0 && graph.nodes()[static_cast<size_t>(node)].op->name == "argmax";
  LOCKSTEP_CHECK(chooses, "{} answers with neither logits nor their argmax", graph.name());
  return graph.nodes()[static_cast<size_t>(node)].inputs[0];
}

double probability_of(float logit) { return 1.0 / (1.0 + portable_exp(-static_cast<double>(logit))); }

void probabilities_of(const float* logits, size_t count, std::vector<double>& probabilities) {
  probabilities.resize(count);
  const double largest = static_cast<double>(*std::max_element(logits, logits + count));
  double sum = 0;
  for (size_t c = 0; c < count; ++c) {
    probabilities[c] = portable_exp(static_cast<double>(logits[c]) - largest);
    sum += probabilities[c];
  }
  for (double& probability : probabilities) probability /= sum;
}

std::optional<int64_t> Answer::records_at_once(Task task) {
  return task == Task::kNextToken ? std::optional<int64_t>(1) : std::nullopt;
}

Model Answer::only_answer(Model model) {
  const std::vector<Value> outputs = outputs_for(model);
  model.graph.clear_outputs();
  for (const Value output : outputs) model.graph.add_output(output);
  return model;
}

Answer::Answer(const Model& model, AnswerOptions options)
    : task_(model.task), target_(model.target), options_(std::move(options)) {
  if (options_.threshold && task_ != Task::kBinary)
    throw UserError("a threshold is for models that answer yes or no; this one does not");
  const bool named = !options_.classes.empty();
  const ValueType class_type = named ? ValueType::kBytes : ValueType::kI64;
  switch (task_) {
    case Task::kBinary:
      LOCKSTEP_CHECK(!named || options_.classes.size() == 2, "{} names for yes and no",
                     options_.classes.size());
      fields_ = {{"probability", ValueType::kF64, 1}};
      if (options_.threshold) fields_.push_back({"decision", class_type, 1});
      return;
    case Task::kRegress: fields_ = {{"value", ValueType::kF64, 1}}; return;
    case Task::kClassify: {
      classes_ = model.graph.type(logits_in(model.graph)).shape[-1];
      LOCKSTEP_CHECK(static_cast<int64_t>(options_.classes.size()) <= classes_, "{} names for {} classes",
                     options_.classes.size(), classes_);
      // Where the data had fewer classes than the model tells apart.
      for (auto c = static_cast<int64_t>(options_.classes.size()); named && c < classes_; ++c)
        options_.classes.push_back(std::to_string(c));
      fields_ = {{"class", class_type, 1}, {"probability", ValueType::kF64, 1}};
      for (int64_t c = 0; options_.each_class && c < classes_; ++c)
        fields_.push_back({fmt::format("probability.{}",
                                       named ? options_.classes[static_cast<size_t>(c)] : std::to_string(c)),
                           ValueType::kF64, 1});
      return;
    }
    case Task::kNextToken: fields_ = {{"loss", ValueType::kF64, 1}, {"tokens", ValueType::kI64, 1}}; return;
  }
}

void Answer::append(Backend& backend, const Executable& computed, int64_t records,
                    std::vector<BlockColumn>& columns) const {
  switch (task_) {
    case Task::kBinary: {
      std::vector<float> logits = download<float>(backend, computed, 0);
      logits.resize(static_cast<size_t>(records));
      return append_binary(logits, columns);
    }
    case Task::kRegress: {
      const std::vector<float> values = download<float>(backend, computed, 0);
      for (size_t r = 0; r < static_cast<size_t>(records); ++r)
        columns[0].as<double>().push_back(static_cast<double>(values[r]) * target_.deviation + target_.mean);
      return;
    }
    case Task::kClassify: return append_classes(download<float>(backend, computed, 0), records, columns);
    case Task::kNextToken: {
      const auto sum = static_cast<double>(download<float>(backend, computed, 0)[0]);
      const int64_t tokens = download<int64_t>(backend, computed, 1)[0];
      columns[0].as<double>().push_back(sum / static_cast<double>(tokens));
      columns[1].as<int64_t>().push_back(tokens);
      return;
    }
  }
}

void Answer::append_binary(const std::vector<float>& logits, std::vector<BlockColumn>& columns) const {
  for (const float logit : logits) {
    const double probability = probability_of(logit);
    columns[0].as<double>().push_back(probability);
    if (options_.threshold) append_class(probability >= *options_.threshold ? 1 : 0, columns[1]);
  }
}

void Answer::append_class(size_t place, BlockColumn& column) const {
  if (options_.classes.empty())
    column.as<int64_t>().push_back(static_cast<int64_t>(place));
  else
    column.as<std::string_view>().push_back(options_.classes[place]);
}

void Answer::append_classes(const std::vector<float>& logits, int64_t records,
                            std::vector<BlockColumn>& columns) const {
  std::vector<double> probabilities;
  const auto classes = static_cast<size_t>(classes_);
  for (size_t r = 0; r < static_cast<size_t>(records); ++r) {
    const float* row = logits.data() + r * classes;
    probabilities_of(row, classes, probabilities);
    const auto best = static_cast<size_t>(std::max_element(row, row + classes) - row);
    append_class(best, columns[0]);
    columns[1].as<double>().push_back(probabilities[best]);
    for (size_t c = 0; options_.each_class && c < classes; ++c)
      columns[2 + c].as<double>().push_back(probabilities[c]);
  }
}

}  // namespace lockstep
