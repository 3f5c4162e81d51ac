#include "train/evaluate/evaluate.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "base/portable_math.h"
#include "comm/collective.h"
#include "graph/op_def.h"
#include "passes/batches.h"
#include "train/evaluate/metrics.h"

namespace lockstep {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
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

BatchesPlan plan_batches(const Model& model, Backend& backend, const PassOptions& passes, int64_t there) {
  BatchesPlan one{plan_evaluation(model, backend, passes)};
  if (passes.units.empty()) return one;
  const int64_t most = evaluation_bytes(one.plan) / 2 * 3;
  PassOptions together = passes;
  const int64_t units = std::ssize(passes.units);
  for (together.batches = std::min({there, kMostTogether, units}); together.batches > 1;
       together.batches /= 2) {
    BatchesPlan several{plan_evaluation(model, backend, together), together.batches};
    if (evaluation_bytes(several.plan) <= most) return several;
  }
  return one;
}

// Sums up the outputs of batches as the task wants it.
class Evaluator::Scores {
 public:
  Scores(Task task, const TargetScale& target) : task_(task), values_(target.deviation) {}

  // The outputs of one batch from `first` on, and which rows of what was read it is.
  void add(Backend& backend, const Executable& executable, size_t first, const Batch& batch, Slice rows) {
    loss_.add(static_cast<double>(download<float>(backend, executable, first)[0]),
              download<int64_t>(backend, executable, first + 1)[0]);
    const size_t labels = batch.index_of(task_ == Task::kNextToken ? "targets" : "labels");
    const size_t answer = first + 2;
    switch (task_) {
      case Task::kNextToken:
        tokens_.add(download<int32_t>(backend, executable, answer), of<int32_t>(batch, labels, rows));
        break;
      case Task::kClassify: add_classes(backend, executable, answer, of<int32_t>(batch, labels, rows)); break;
      case Task::kBinary:
        binary_.add(download<float>(backend, executable, answer), of<float>(batch, labels, rows));
        break;
      case Task::kRegress:
        values_.add(download<float>(backend, executable, answer), of<float>(batch, labels, rows));
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
  // Of a column, those of some rows.
  template <typename T>
  static std::span<const T> of(const Batch& batch, size_t column, Slice rows) {
    const std::span<const T> values = batch.values<T>(column);
    const size_t each = values.size() / static_cast<size_t>(batch.records());
    return values.subspan(static_cast<size_t>(rows.begin) * each, static_cast<size_t>(rows.size()) * each);
  }

  void add_classes(Backend& backend, const Executable& executable, size_t output,
                   std::span<const int32_t> labels) {
    const Type& answer = executable.graph().type(executable.graph().outputs()[output].value);
    logits_ = answer.dtype == DType::kF32;
    if (logits_)
      classes_.add_logits(download<float>(backend, executable, output), answer.shape[-1], labels);
    else
      classes_.add(download<int32_t>(backend, executable, output), labels);
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
  if (records >= batch) full_ = prepare(build, passes, batch, records / batch);
  if (records % batch != 0) tail_ = prepare(build, passes, records % batch, 1);
}

// `there`: batches, of which as many as may be run together, and in the last run not much fewer.
Evaluator::Prepared Evaluator::prepare(const Build& build, const PassOptions& passes, int64_t batch,
                                       int64_t there) {
  const Model model = build(batch);
  LOCKSTEP_CHECK(model.samples == batch && model.graph.outputs().size() >= 3,
                 "{} was not built to evaluate batches of {}", model.graph.name(), batch);
  task_ = model.task;
  target_ = model.target;
  // Of many batches as the plan of the job has it, which does not know how many there are.
  BatchesPlan planned = plan_batches(model, backend_, passes, there == 1 ? 1 : kMostTogether);
  const int64_t even = ceil_div(there, ceil_div(there, std::min(there, planned.batches)));
  if (even < planned.batches) planned = plan_batches(model, backend_, passes, even);
  planned_bytes_ = std::max(planned_bytes_, evaluation_bytes(planned.plan));
  // Full batches come first, and a tail seldom needs more.
  const int64_t arena = planned.plan.memory.arena_peak;
  if (!arena_ || arena_->bytes() < arena) arena_ = backend_.allocate(arena);
  Prepared prepared{
      std::make_unique<Executable>(std::move(planned.plan), backend_, arena_), {}, batch, planned.batches};
  for (const GraphInput& input : model.graph.inputs()) {
    if (input.role != Role::kInput) continue;
    prepared.inputs.push_back({model.graph.name(input.value), model.graph.type(input.value)});
    const Input& own = prepared.inputs.back();
    for (int64_t n = 0; n < prepared.together; ++n) {
      const std::string name = batch_input(own.name, n);
      std::unique_ptr<Buffer>& buffer = inputs_[name];  // the tail shares those of full batches
      if (!buffer) buffer = backend_.allocate(own.type.bytes());
      prepared.executable->bind(name, buffer->data());
    }
  }
  return prepared;
}

void Evaluator::gather_with(UnitSource& source) {
  for (const Prepared* prepared : {&full_, &tail_})
    if (prepared->executable) prepared->executable->gather_with(source);
}

void Evaluator::bind_weights(const Prepared& prepared, const AddressOf& address_of) const {
  const Graph& graph = prepared.executable->graph();
  for (const GraphInput& input : graph.inputs())
    if (input.role != Role::kInput)
      prepared.executable->bind(graph.name(input.value), address_of(graph.name(input.value)));
}

// The rows from `first` on, as the n-th of the batches that run together.
void Evaluator::load(const Prepared& prepared, const Batch& from, int64_t first, int64_t number) {
  for (const Input& input : prepared.inputs) {
    const size_t column = from.index_of(input.name);
    const int64_t row = from.bytes(column) / from.records();
    if (row * prepared.rows != input.type.bytes())
      throw UserError("the model takes {} as {}, but the data has {} of shape {} per record", input.name,
                      to_string(input.type), name_of(from.columns()[column].dtype),
                      to_string(from.columns()[column].shape));
    backend_.upload(inputs_.at(batch_input(input.name, number))->data(),
                    static_cast<const std::byte*>(from.data(column)) + first * row, input.type.bytes());
  }
}

// All batches that are there from this row on. Where they are fewer than run together, the last one is run
// for those that are missing, and counted once.
void Evaluator::run_batches(const Prepared& prepared, const Batch& from, int64_t first, Scores& scores) {
  const int64_t there = std::min(prepared.together, (from.records() - first) / prepared.rows);
  for (int64_t n = 0; n < prepared.together; ++n)
    load(prepared, from, first + std::min(n, there - 1) * prepared.rows, n);
  Executable& executable = *prepared.executable;
  executable.run();
  const size_t outputs = executable.graph().outputs().size() / static_cast<size_t>(prepared.together);
  for (int64_t n = 0; n < there; ++n) {
    const int64_t begin = first + n * prepared.rows;
    scores.add(backend_, executable, static_cast<size_t>(n) * outputs, from, {begin, begin + prepared.rows});
  }
  if (look_) look_(from, executable);
}

EvalResult Evaluator::run(const Source& source, const AddressOf& address_of,
                          const std::function<void()>& after_batch, const StreamOptions& reading) {
  LOCKSTEP_CHECK(source.size() == records_, "{} records to evaluate, not {}", source.size(), records_);
  const auto start = std::chrono::steady_clock::now();
  LOCKSTEP_CHECK(full_.together == 1 || !look_, "several batches are looked at one by one");
  const int64_t rows = batch_ * full_.together;
  BatchPlan plan;
  plan.batches = ceil_div(records_, rows);
  plan.rows = rows;
  plan.last = records_ - (plan.batches - 1) * rows;
  plan.records = [rows](int64_t number, int64_t row, std::span<int64_t> records,
                        std::vector<int64_t>* epochs) {
    std::iota(records.begin(), records.end(), number * rows + row);
    if (epochs != nullptr) epochs->assign(records.size(), 0);
  };
  for (const Prepared* prepared : {&full_, &tail_})
    if (prepared->executable) bind_weights(*prepared, address_of);
  const int64_t reads = plan.batches;
  BatchStream batches(source, std::move(plan), reading);
  Scores scores(task_, target_);
  for (int64_t number = 0; number < reads; ++number) {
    const Batch& batch = batches.get(number);
    if (batch.records() >= batch_) {
      run_batches(full_, batch, 0, scores);
      after_batch();
    }
    if (const int64_t left = batch.records() % batch_; left > 0)
      run_batches(tail_, batch, batch.records() - left, scores);
  }
  EvalResult result = scores.result();
  result.samples = records_;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace lockstep
