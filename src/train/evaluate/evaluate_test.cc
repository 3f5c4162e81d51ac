// Evaluation of every family: against the interpreter, with a tail, over threads.
#include "train/evaluate/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/open/open.h"
#include "data/source/wrapped_source.h"
#include "data/table/table.h"
#include "graph/interpreter.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "train/evaluate/evaluation_units.h"

namespace lockstep {
namespace {

constexpr int64_t kRecords = 13;

struct Family {
  Evaluator::Build build;
  std::shared_ptr<const Source> source;
};

// Frauds are rare: a range of records in the middle of which one is.
std::shared_ptr<const Source> around_a_fraud(const std::shared_ptr<const Source>& source) {
  Batch batch(source->columns(), 1);
  int64_t record = kRecords;
  do source->fill(std::vector{++record}, batch);
  while (batch.values<float>(batch.index_of("labels"))[0] < 0.5f);
  return std::make_shared<SliceSource>(source, record - kRecords / 2, kRecords);
}

// A table with this label, by the row.
template <typename Label>
Family table_family(const Label& label) {
  std::string text = "x,z,c,y\n";
  for (int i = 0; i < kRecords; ++i)
    text += fmt::format("{},{},k{},{}\n", i * 7 % 11, i % 4, i % 3, label(i));
  TableOptions options;
  options.encoding.label = "y";
  options.encoding.buckets = 40;
  const Table table = open_table(options, [text] {
    Shards shards;
    shards.push_back(open_text("t.csv", text));
    return shards;
  });
  const LabelEncoding& labels = table.encoding->encoding().labels;
  TabularSizes sizes{1, 40, 8, 2, {16}, {16}, 1, false};
  sizes.task = labels.task == LabelTask::kRegression ? Task::kRegress : Task::kClassify;
  sizes.classes = labels.class_count();
  sizes.target = {labels.mean, labels.deviation};
  return {[sizes](int64_t batch) {
            TabularSizes of_batch = sizes;
            of_batch.batch = batch;
            return build_tabular(of_batch);
          },
          table.source};
}

Family make_family(const std::string& name) {
  if (name == "classes") return table_family([](int i) { return i % 3 == 0 ? "a" : i % 3 == 1 ? "b" : "c"; });
  if (name == "numbers") return table_family([](int i) { return 100 + 2.5 * i; });
  DataOptions options;
  options.train.samples = 200;
  options.eval.samples = kRecords;
  options.seq = 9;
  options.vocab = 31;
  options.classes = 3;
  options.image = 32;
  options.padded = true;
  options.encoding.buckets = 40;
  using Format = DataOptions::Format;
  if (name == "gpt") {
    options.format = Format::kPatternTokens;
    return {[](int64_t b) { return build_gpt({1, 24, 2, 31, b, 9, 0.1, false}); }, open_data(options).eval};
  }
  if (name == "llama") {
    options.format = Format::kPatternTokens;
    return {[](int64_t b) {
              return build_llama({.layers = 1,
                                  .dim = 24,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .hidden = 40,
                                  .vocab = 31,
                                  .batch = b,
                                  .seq = 9,
                                  .training = false});
            },
            open_data(options).eval};
  }
  if (name == "encoder") {
    options.format = Format::kPatternText;
    return {[](int64_t b) {
              return build_encoder({1, 24, 2, 48, 31, 3, b, 9, 0.1, true, false});
            },
            open_data(options).eval};
  }
  if (name == "resnet") {
    options.format = Format::kPatternImages;
    return {[](int64_t b) { return build_resnet({18, 4, 32, 3, b, false}); }, open_data(options).eval};
  }
  options.format = Format::kFraud;
  options.train.samples = 2000;
  const auto source = around_a_fraud(open_data(options).train);
  int64_t tables = 0, dense = 0;
  for (const Column& column : source->columns()) {
    tables += column.name.starts_with("category.");
    if (column.name == "dense") dense = column.shape.numel();
  }
  return {[=](int64_t b) { return build_tabular({tables, 40, 8, dense, {16}, {16}, b, false}); }, source};
}

// The weights of a model fresh from the seed; running statistics that are neither 0 nor 1.
std::unordered_map<std::string, std::vector<float>> make_weights(const Model& model) {
  std::unordered_map<std::string, std::vector<float>> weights;
  size_t next = 0;
  for (const GraphInput& input : model.graph.inputs()) {
    if (input.role == Role::kInput) continue;
    const std::string& name = model.graph.name(input.value);
    std::vector<float>& values = weights[name];
    values.resize(static_cast<size_t>(model.graph.type(input.value).shape.numel()));
    if (input.role == Role::kParam)
      init_param(model.params[next++], 3, 0, values);
    else
      std::fill(values.begin(), values.end(), name.ends_with("var") ? 1.5f : 0.1f);
  }
  return weights;
}

EvalResult evaluate(const Family& family, int64_t batch, int threads, const PassOptions& passes = {}) {
  const auto backend = make_cpu_backend(threads);
  std::unordered_map<std::string, std::unique_ptr<Buffer>> buffers;
  for (const auto& [name, values] : make_weights(family.build(1))) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    buffers[name] = backend->allocate(bytes);
    backend->upload(buffers[name]->data(), values.data(), bytes);
  }
  Evaluator evaluator(family.build, *backend, passes, batch, kRecords);
  EXPECT_GT(evaluator.planned_bytes(), 0);
  return evaluator.run(*family.source,
                       [&](std::string_view name) { return buffers.at(std::string(name))->data(); });
}

std::vector<double> numbers(const EvalResult& r) {
  std::vector<double> values{r.loss, static_cast<double>(r.count), static_cast<double>(r.samples)};
  for (const auto& metric : {r.perplexity, r.accuracy, r.auc, r.f1, r.f1_threshold, r.pr_auc, r.macro_f1,
                             r.log_loss, r.mae, r.rmse, r.r2})
    if (metric) values.push_back(*metric);
  return values;
}

// What a model chooses for sample i: its answer, or the place of the highest of its logits.
int64_t choice_of(const RefTensor& answer, int64_t i) {
  if (answer.shape().rank() == 1) return static_cast<int64_t>(answer[i]);
  const int64_t classes = answer.shape()[1];
  const double* row = answer.data.data() + i * classes;
  return std::max_element(row, row + classes) - row;
}

class Evaluation : public ::testing::TestWithParam<std::string> {};

TEST_P(Evaluation, EqualsTheInterpreter) {
  const Family family = make_family(GetParam());
  const Model model = family.build(kRecords);
  RefTensors inputs;
  const auto weights = make_weights(model);
  Batch batch(family.source->columns(), kRecords);
  std::vector<int64_t> records(kRecords);
  std::iota(records.begin(), records.end(), 0);
  family.source->fill(records, batch);
  for (const GraphInput& input : model.graph.inputs()) {
    const std::string& name = model.graph.name(input.value);
    RefTensor& tensor = inputs.emplace(name, RefTensor(model.graph.type(input.value))).first->second;
    const void* data =
        input.role == Role::kInput ? batch.data(batch.index_of(name)) : weights.at(name).data();
    for (int64_t i = 0; i < tensor.numel(); ++i) tensor[i] = read_element(tensor.type.dtype, data, i);
  }
  const std::vector<RefTensor> want = interpret(model.graph, inputs);
  const EvalResult result = evaluate(family, kRecords, 2);
  EXPECT_NEAR(result.loss, want[0].scalar() / want[1].scalar(), 1e-5 * result.loss);
  EXPECT_EQ(static_cast<double>(result.count), want[1].scalar());
  const RefTensor& labels = inputs.at(model.task == Task::kNextToken ? "targets" : "labels");
  if (model.task == Task::kRegress) {
    double squares = 0;
    for (int64_t i = 0; i < labels.numel(); ++i)
      squares += (want[2][i] - labels[i]) * (want[2][i] - labels[i]);
    const double rmse = model.target.deviation * std::sqrt(squares / want[1].scalar());
    EXPECT_NEAR(*result.rmse, rmse, 1e-5 * rmse);
    return;
  }
  double right = 0;
  for (int64_t i = 0; i < labels.numel(); ++i)
    right += model.task == Task::kBinary ? (want[2][i] >= 0) == (labels[i] > 0.5)
                                         : static_cast<double>(choice_of(want[2], i)) == labels[i];
  EXPECT_EQ(*result.accuracy, right / want[1].scalar());
  if (result.log_loss) {
    EXPECT_NEAR(*result.log_loss, result.loss, 1e-5 * result.loss);
  }
}

TEST_P(Evaluation, TheTailCountsOnce) {
  const Family family = make_family(GetParam());
  const EvalResult whole = evaluate(family, kRecords, 2);
  for (const int64_t batch : {1, 5, 50}) {
    const EvalResult parts = evaluate(family, batch, 2);
    EXPECT_EQ(parts.count, whole.count);
    EXPECT_EQ(parts.samples, kRecords);
    EXPECT_NEAR(parts.loss, whole.loss, 1e-5 * whole.loss);
    EXPECT_EQ(parts.accuracy, whole.accuracy);
    EXPECT_EQ(parts.macro_f1, whole.macro_f1);
    EXPECT_EQ(parts.auc, whole.auc);
    EXPECT_EQ(parts.pr_auc, whole.pr_auc);
    // A product over one row may round differently from one over many; the metrics add nothing to that.
    for (const auto& [one, other] : {std::pair{parts.mae, whole.mae},
                                     {parts.rmse, whole.rmse},
                                     {parts.r2, whole.r2},
                                     {parts.log_loss, whole.log_loss}}) {
      ASSERT_EQ(one.has_value(), other.has_value());
      if (one) {
        EXPECT_NEAR(*one, *other, 2e-6 * std::fabs(*other));
      }
    }
  }
}

TEST_P(Evaluation, AnyNumberOfThreads) {
  const Family family = make_family(GetParam());
  PassOptions bf16;
  bf16.compute = DType::kBF16;
  const std::vector<double> want = numbers(evaluate(family, 5, 1));
  const std::vector<double> want_bf16 = numbers(evaluate(family, 5, 1, bf16));
  EXPECT_NEAR(want_bf16[0], want[0], 2e-2 * want[0]);
  EXPECT_NE(want_bf16[0], want[0]);
  for (const int threads : {2, 8}) {
    EXPECT_EQ(numbers(evaluate(family, 5, threads)), want);
    EXPECT_EQ(numbers(evaluate(family, 5, threads, bf16)), want_bf16);
  }
}

TEST_P(Evaluation, HasTheMetricsOfItsTask) {
  const Family family = make_family(GetParam());
  const EvalResult result = evaluate(family, kRecords, 2);
  const Task task = family.build(1).task;
  for (const std::string_view metric : {"loss", "perplexity", "accuracy", "auc", "f1", "pr_auc", "macro_f1",
                                        "log_loss", "mae", "rmse", "r2"}) {
    const auto known = metrics_of(task);
    if (std::find(known.begin(), known.end(), metric) != known.end()) {
      EXPECT_NO_THROW(metric_value(result, metric));
      EXPECT_NO_THROW(check_metric(task, metric));
    } else {
      EXPECT_THROW(metric_value(result, metric), UserError);
      EXPECT_THROW(check_metric(task, metric), UserError);
    }
  }
}

// Brings units out of the host's memory, and counts how often.
class UnitsOfHost : public UnitSource {
 public:
  UnitsOfHost(std::vector<ParamUnit> units,
              const std::unordered_map<std::string, std::vector<float>>& weights)
      : units_(std::move(units)), weights_(weights) {}
  void start(int64_t unit, void* into, bool) override {
    ++brought_;
    for (const ParamUnit::Part& part : units_.at(static_cast<size_t>(unit)).parts) {
      const std::vector<float>& values = weights_.at(part.name);
      std::copy(values.begin(), values.end(), static_cast<float*>(into) + part.offset);
    }
  }
  void wait(int64_t, int64_t, int64_t) override {}
  int64_t brought() const { return brought_; }

 private:
  std::vector<ParamUnit> units_;
  const std::unordered_map<std::string, std::vector<float>>& weights_;
  int64_t brought_ = 0;
};

// Of one batch and of several together, of as many as there are together and fewer, with a tail and without.
TEST_P(Evaluation, UnitByUnitItIsTheSame) {
  const Family family = make_family(GetParam());
  const auto weights = make_weights(family.build(1));
  for (const int64_t batch : {1, 2, 3, 13, 20}) {
    PassOptions passes;
    passes.units = evaluation_units(
        family.build(batch).graph, [](std::string_view) { return false; }, 1024);
    const auto backend = make_cpu_backend(2);
    Evaluator evaluator(family.build, *backend, passes, batch, kRecords);
    EXPECT_EQ(evaluator.units().size(), passes.units.size());
    UnitsOfHost units(passes.units, weights);
    evaluator.gather_with(units);
    const EvalResult found = evaluator.run(*family.source, [&](std::string_view name) {
      return const_cast<float*>(weights.at(std::string(name)).data());
    });
    EXPECT_EQ(numbers(found), numbers(evaluate(family, batch, 2))) << "batches of " << batch;
    EXPECT_GE(units.brought(), static_cast<int64_t>(passes.units.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Evaluation,
                         ::testing::Values("gpt", "llama", "encoder", "tabular", "resnet", "classes",
                                           "numbers"),
                         [](const auto& info) { return info.param; });

// Thirteen batches, by as many as there are units.
TEST(Evaluator, BringsUnitsOnceForSeveralBatches) {
  const Family gpt = make_family("gpt");
  const auto weights = make_weights(gpt.build(1));
  PassOptions passes;
  passes.units = evaluation_units(
      gpt.build(1).graph, [](std::string_view) { return false; }, 1024);
  const auto backend = make_cpu_backend(1);
  Evaluator evaluator(gpt.build, *backend, passes, 1, kRecords);
  UnitsOfHost units(passes.units, weights);
  evaluator.gather_with(units);
  int64_t runs = 0;
  evaluator.run(
      *gpt.source, [](std::string_view) -> void* { return nullptr; }, [&] { ++runs; });
  ASSERT_EQ(passes.units.size(), 3u);
  EXPECT_EQ(runs, 5);
  // The tied table twice.
  EXPECT_EQ(units.brought(), 5 * (3 + 1));
}

TEST(Evaluator, RefusesDataThatDoesNotFit) {
  const Family gpt = make_family("gpt");
  EXPECT_THROW(evaluate({gpt.build, make_family("resnet").source}, 4, 1), UserError);
  const auto longer = [](int64_t b) { return build_gpt({1, 24, 2, 31, b, 10, 0.0, false}); };
  EXPECT_THROW(evaluate({longer, gpt.source}, 4, 1), UserError);
}

}  // namespace
}  // namespace lockstep
