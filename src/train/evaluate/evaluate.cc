#include "train/evaluate/evaluate.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "base/portable_math.h"
#include "graph/op_def.h"
#include "train/evaluate/metrics.h"

namespace lockstep {
namespace {

double probability(float logit) { return 1.0 / (1.0 + portable_exp(-static_cast<double>(logit))); }

template <typename T>
std::vector<T> download(Backend& backend, const Executable& executable, size_t output) {
  const Type& type = executable.graph().type(executable.graph().outputs()[output].value);
  LOCKSTEP_CHECK(type.bytes() == type.shape.numel() * static_cast<int64_t>(sizeof(T)), "output {} is {}",
                 output, to_string(type));
  std::vector<T> values(static_cast<size_t>(type.shape.numel()));
  backend.download(values.data(), executable.output(output), type.bytes());
  return values;
}

}  // namespace

Plan plan_evaluation(const Model& model, Backend& backend, const PassOptions& passes) {
  PassOptions forward = passes;
  forward.disabled.emplace_back("autodiff");
  forward.stochastic_rounding = false;  // what is measured is the weights, not a draw around them
  return compile_plan(model.graph, backend, forward);
}

int64_t evaluation_bytes(const Plan& plan) {
  int64_t bytes = plan.memory.arena_peak;
  for (const GraphInput& input : plan.graph.inputs())
    if (input.role == Role::kInput) bytes += plan.graph.type(input.value).bytes();
  return bytes;
}

// Sums up the outputs of batches as the task wants it.
class Evaluator::Scores {
 public:
  Scores(Task task, const TargetScale& target) : task_(task), values_(target.deviation) {}

  void add(Backend& backend, const Executable& executable, const Batch& batch) {
    loss_.add(static_cast<double>(download<float>(backend, executable, 0)[0]),
              download<int64_t>(backend, executable, 1)[0]);
    const size_t labels = batch.index_of(task_ == Task::kNextToken ? "targets" : "labels");
    switch (task_) {
      case Task::kNextToken:
        tokens_.add(download<int32_t>(backend, executable, 2), batch.values<int32_t>(labels));
        break;
      case Task::kClassify: add_classes(backend, executable, batch.values<int32_t>(labels)); break;
      case Task::kBinary:
        binary_.add(download<float>(backend, executable, 2), batch.values<float>(labels));
        break;
      case Task::kRegress:
        values_.add(download<float>(backend, executable, 2), batch.values<float>(labels));
        break;
    }
  }

  EvalResult result() const {
    EvalResult result;
    result.loss = loss_.mean();
    result.count = loss_.count;
    switch (task_) {
      case Task::kNextToken:
        result.perplexity = loss_.perplexity();
        result.accuracy = tokens_.accuracy();
        break;
      case Task::kClassify:
        result.accuracy = classes_.accuracy();
        result.macro_f1 = classes_.macro_f1();
        // Where a model answers with its choice alone, the loss has to do.
        result.log_loss = logits_ ? classes_.log_loss() : result.loss;
        break;
      case Task::kBinary: add_binary(result); break;
      case Task::kRegress:
        result.mae = values_.mae();
        result.rmse = values_.rmse();
        result.r2 = values_.r2();
        break;
    }
    return result;
  }

 private:
  void add_classes(Backend& backend, const Executable& executable, std::span<const int32_t> labels) {
    const Type& answer = executable.graph().type(executable.graph().outputs()[2].value);
    logits_ = answer.dtype == DType::kF32;
    if (logits_)
      classes_.add_logits(download<float>(backend, executable, 2), answer.shape[-1], labels);
    else
      classes_.add(download<int32_t>(backend, executable, 2), labels);
  }

  void add_binary(EvalResult& result) const {
    const BestF1 best = binary_.best_f1();
    result.accuracy = binary_.at(0.0f).accuracy();
    result.log_loss = binary_.log_loss();
    result.auc = binary_.auc();
    result.pr_auc = binary_.pr_auc();
    result.f1 = best.f1;
    result.f1_threshold = probability(best.threshold);
  }

  Task task_;
  LossSum loss_;
  ClassCounts tokens_;
  ClassConfusion classes_;
  bool logits_ = false;
  BinaryScores binary_;
  ValueErrors values_;
};

Evaluator::Evaluator(const Build& build, Backend& backend, const PassOptions& passes, int64_t batch,
                     int64_t records)
    : backend_(backend), units_(passes.units), batch_(batch), records_(records) {
  LOCKSTEP_CHECK(batch >= 1 && records >= 1, "{} records in batches of {}", records, batch);
  if (records >= batch) full_ = prepare(build, passes, batch);
  if (records % batch != 0) tail_ = prepare(build, passes, records % batch);
}

std::unique_ptr<Executable> Evaluator::prepare(const Build& build, const PassOptions& passes, int64_t batch) {
  const Model model = build(batch);
  LOCKSTEP_CHECK(model.samples == batch && model.graph.outputs().size() >= 3,
                 "{} was not built to evaluate batches of {}", model.graph.name(), batch);
  task_ = model.task;
  target_ = model.target;
  Plan plan = plan_evaluation(model, backend_, passes);
  planned_bytes_ = std::max(planned_bytes_, evaluation_bytes(plan));
  // Full batches come first, and a tail seldom needs more.
  if (!arena_ || arena_->bytes() < plan.memory.arena_peak) arena_ = backend_.allocate(plan.memory.arena_peak);
  auto executable = std::make_unique<Executable>(std::move(plan), backend_, arena_);
  for (const GraphInput& input : executable->graph().inputs()) {
    if (input.role != Role::kInput) continue;
    const std::string& name = executable->graph().name(input.value);
    std::unique_ptr<Buffer>& buffer = inputs_[name];  // the tail shares those of full batches
    if (!buffer) buffer = backend_.allocate(executable->graph().type(input.value).bytes());
    executable->bind(name, buffer->data());
  }
  return executable;
}

void Evaluator::gather_with(UnitSource& source) {
  for (Executable* executable : {full_.get(), tail_.get()})
    if (executable != nullptr) executable->gather_with(source);
}

void Evaluator::bind_weights(Executable& executable, const AddressOf& address_of) const {
  for (const GraphInput& input : executable.graph().inputs()) {
    if (input.role == Role::kInput) continue;
    const std::string& name = executable.graph().name(input.value);
    executable.bind(name, address_of(name));
  }
}

void Evaluator::run_batch(Executable& executable, const Batch& batch, Scores& scores) {
  for (const GraphInput& input : executable.graph().inputs()) {
    if (input.role != Role::kInput) continue;
    const std::string& name = executable.graph().name(input.value);
    const size_t column = batch.index_of(name);
    const Type& type = executable.graph().type(input.value);
    if (batch.bytes(column) != type.bytes())
      throw UserError("the model takes {} as {}, but the data has {} of shape {} per record", name,
                      to_string(type), name_of(batch.columns()[column].dtype),
                      to_string(batch.columns()[column].shape));
    backend_.upload(inputs_.at(name)->data(), batch.data(column), type.bytes());
  }
  executable.run();
  scores.add(backend_, executable, batch);
  if (look_) look_(batch, executable);
}

EvalResult Evaluator::run(const Source& source, const AddressOf& address_of,
                          const std::function<void()>& after_batch, const StreamOptions& reading) {
  LOCKSTEP_CHECK(source.size() == records_, "{} records to evaluate, not {}", source.size(), records_);
  const auto start = std::chrono::steady_clock::now();
  BatchPlan plan;
  plan.batches = (records_ + batch_ - 1) / batch_;
  plan.rows = batch_;
  plan.last = records_ - (plan.batches - 1) * batch_;
  plan.records = [this](int64_t number, int64_t row, std::span<int64_t> records,
                        std::vector<int64_t>* epochs) {
    std::iota(records.begin(), records.end(), number * batch_ + row);
    if (epochs != nullptr) epochs->assign(records.size(), 0);
  };
  BatchStream batches(source, std::move(plan), reading);
  Scores scores(task_, target_);
  const int64_t in_full = records_ / batch_;
  if (full_) {
    bind_weights(*full_, address_of);
    for (int64_t number = 0; number < in_full; ++number) {
      run_batch(*full_, batches.get(number), scores);
      after_batch();
    }
  }
  if (tail_) {
    bind_weights(*tail_, address_of);
    run_batch(*tail_, batches.get(in_full), scores);
  }
  EvalResult result = scores.result();
  result.samples = records_;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace lockstep
