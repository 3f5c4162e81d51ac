#include "use/evaluate_run.h"

#include <algorithm>

#include "base/error.h"
#include "data/open/open_kept.h"
#include "prepare/job_data.h"
#include "prepare/job_model.h"
#include "prepare/job_options.h"
#include "prepare/job_reading.h"
#include "train/checkpoint/saved_weights.h"
#include "train/evaluate/evaluate.h"
#include "use/answer.h"
#include "use/use_data.h"

namespace lockstep {
namespace {

// The output that a graph of classes which answers with its choice gets beside those of an evaluation.
constexpr size_t kLogits = 3;

bool answers_with_logits(const Graph& graph) {
  return graph.type(graph.outputs()[2].value).dtype == DType::kF32;
}

template <typename T>
std::vector<T> download(Backend& backend, const Executable& computed, size_t output) {
  const Type& type = computed.graph().type(computed.graph().outputs()[output].value);
  std::vector<T> values(static_cast<size_t>(type.shape.numel()));
  LOCKSTEP_CHECK(type.bytes() == static_cast<int64_t>(values.size() * sizeof(T)), "output {} is {}", output,
                 to_string(type));
  backend.download(values.data(), computed.output(output), type.bytes());
  return values;
}

// Keeps what curves, tables and bins are made of.
class Findings {
 public:
  Findings(Task task, Backend& backend) : task_(task), backend_(backend) {}

  void look(const Batch& batch, const Executable& computed) {
    switch (task_) {
      case Task::kBinary: return look_at_scores(batch, computed);
      case Task::kClassify: return look_at_classes(batch, computed);
      case Task::kRegress:
      case Task::kNextToken: return;  // their metrics say all there is
    }
  }

  void finish(RunEvaluation& evaluation) {
    if (task_ == Task::kNextToken || task_ == Task::kRegress) return;
    evaluation.calibration = calibration_of(probabilities_, happened_);
    if (task_ == Task::kClassify) {
      evaluation.confusion = std::move(confusion_);
      return;
    }
    evaluation.confusion = at(0.5);
    if (evaluation.result.f1_threshold) evaluation.at_best_f1 = at(*evaluation.result.f1_threshold);
    evaluation.curve.emplace(std::move(samples_));
  }

 private:
  void look_at_scores(const Batch& batch, const Executable& computed) {
    const auto labels = batch.values<float>(batch.index_of("labels"));
    const std::vector<float> logits = download<float>(backend_, computed, 2);
    for (size_t i = 0; i < logits.size(); ++i) {
      samples_.push_back({logits[i], labels[i] > 0.5f});
      probabilities_.push_back(probability_of(logits[i]));
      happened_.push_back(labels[i] > 0.5f);
    }
  }

  void look_at_classes(const Batch& batch, const Executable& computed) {
    const auto labels = batch.values<int32_t>(batch.index_of("labels"));
    const size_t output = answers_with_logits(computed.graph()) ? 2 : kLogits;
    const std::vector<float> logits = download<float>(backend_, computed, output);
    const auto classes =
        static_cast<size_t>(computed.graph().type(computed.graph().outputs()[output].value).shape[-1]);
    if (!confusion_) confusion_.emplace(static_cast<int64_t>(classes));
    std::vector<double> each;
    for (size_t i = 0; i < logits.size() / classes; ++i) {
      if (labels[i] == kIgnoredLabel) continue;
      const float* const row = logits.data() + i * classes;
      // The first of several that are equal, as argmax has it.
      const auto predicted = static_cast<int32_t>(std::max_element(row, row + classes) - row);
      confusion_->add(labels[i], predicted);
      probabilities_of(row, classes, each);
      probabilities_.push_back(each[static_cast<size_t>(predicted)]);
      happened_.push_back(predicted == labels[i]);
    }
  }

  ConfusionMatrix at(double threshold) const {
    ConfusionMatrix matrix(2);
    for (size_t i = 0; i < probabilities_.size(); ++i)
      matrix.add(happened_[i] ? 1 : 0, probabilities_[i] >= threshold ? 1 : 0);
    return matrix;
  }

  Task task_;
  Backend& backend_;
  std::vector<ScoredLabel> samples_;
  std::vector<double> probabilities_;
  std::vector<bool> happened_;
  std::optional<ConfusionMatrix> confusion_;
};

std::shared_ptr<const Source> records_of(const TrainedRun& run, const EvaluateOptions& options, JobSpec& spec,
                                         const HostShare& host) {
  if (options.files.empty()) {
    auto held_out = open_job_data(spec, host).eval;
    if (!held_out)
      throw UserError("{}: the run held no records out to evaluate on; name files with --data", run.path);
    return held_out;
  }
  choose_format(options.files, options.format, spec);
  return open_to_evaluate(job_data_options(spec, host), run.constants, options.files);
}

}  // namespace

RunEvaluation evaluate_run(const TrainedRun& run, const EvaluateOptions& options) {
  JobSpec spec = run.spec;
  const HostShare host = host_share(std::nullopt);
  spec.strategy.threads = options.threads.value_or(host.processors);
  const std::shared_ptr<const Source> source = records_of(run, options, spec, host);
  const InputSizes inputs = input_sizes(source->columns(), run.labels);
  const auto backend = make_backend(job_device(spec, host));
  const auto build = [&](int64_t batch) {
    Model model = build_job_evaluation(spec, inputs, batch);
    if (model.task == Task::kClassify && !answers_with_logits(model.graph))
      model.graph.add_output(logits_in(model.graph));
    return model;
  };
  const SavedWeights weights(*run.checkpoint, run.base_weights(), build(1).graph, *backend);
  // In the batches of training: what is summed in other ones may differ in the last digit.
  Evaluator evaluator(build, *backend, job_passes(spec), spec.train.microbatch, source->size());
  Findings findings(evaluator.task(), *backend);
  evaluator.on_batch([&](const Batch& batch, const Executable& computed) { findings.look(batch, computed); });
  const JobReading reading(spec, host);
  RunEvaluation evaluation;
  evaluation.checkpoint = run.path;
  evaluation.step = run.step();
  evaluation.task = evaluator.task();
  evaluation.result = evaluator.run(
      *source, [&](std::string_view name) { return weights.address(name); }, [] {}, reading.eval());
  evaluation.classes = class_names(run, job_data_options(spec, host));
  findings.finish(evaluation);
  return evaluation;
}

}  // namespace lockstep
