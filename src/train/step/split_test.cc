// Workers that own pieces of the state, and of the gradients, give the bits of one.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <mutex>

#include "base/error.h"
#include "comm/mesh_testing.h"
#include "comm/wire/wire_testing.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/stored_params.h"
#include "model/tabular.h"
#include "train/step/synthetic.h"
#include "train/step/train_memory.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

constexpr int64_t kMicrobatches = 8;
// Several buckets, of blocks that not all workers get one of.
constexpr int64_t kSmallBucket = 16384;

struct Outcome {
  std::string hash;
  double loss = 0;
  double norm = 0;
  int64_t count = 0;
  bool operator==(const Outcome&) const = default;
};

// The optimizer's tensors and the averages, put together from what all workers own of them.
class Collected {
 public:
  void add(TrainStep& train) {
    const std::lock_guard lock(mutex_);
    for (const auto* tensors : {&train.state().optimizer(), &train.state().averages()})
      for (const StateTensor& tensor : *tensors) {
        std::vector<char>& bytes = tensors_[tensor.name];
        bytes.resize(static_cast<size_t>(tensor.bytes()));
        const int64_t element = size_of(tensor.dtype);
        for (const StatePiece& piece : pieces_of(tensor)) {
          train.backend().download(bytes.data() + piece.first * element, piece.data, piece.count * element);
          elements_[tensor.name] += piece.count;
        }
      }
  }
  const std::map<std::string, std::vector<char>>& tensors() const { return tensors_; }
  const std::map<std::string, int64_t>& elements() const { return elements_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<char>> tensors_;
  std::map<std::string, int64_t> elements_;
};

Outcome run(const Model& model, TrainOptions options, const MeshGroups& groups, Collected& state) {
  const auto backend = make_cpu_backend(1);
  options.microbatches = kMicrobatches;
  options.workers = groups.data == nullptr ? 1 : groups.data->size();
  TrainStep train(model, *backend, options, groups);
  StepResult result;
  for (int64_t step = 1; step <= 3; ++step)
    result =
        train.run(1e-2, [&](int64_t m) { set_synthetic_inputs(train, model, 11, step * kMicrobatches + m); });
  state.add(train);
  return {train.weights_sha256(), result.loss, result.grad_norm, result.count};
}

TrainOptions with_stage(int zero, int64_t leaves, int64_t bucket = kSmallBucket) {
  TrainOptions options;
  options.zero = zero;
  options.leaves = leaves;
  options.reduce.bucket_bytes = bucket;
  options.seed = 7;
  return options;
}

// `sizes`: workers on each host.
void expect_bits_of_one(const Model& model, const TrainOptions& options, const std::vector<int>& sizes,
                        bool split_all = true) {
  Collected alone, together;
  const Outcome one = run(model, options, {}, alone);
  int ranks = 0;
  for (const int size : sizes) ranks += size;
  std::vector<Outcome> all(static_cast<size_t>(ranks));
  testing::on_hosts(sizes, LeafSplit::search(options.leaves, ranks), [&](Group& group) {
    all[static_cast<size_t>(group.rank())] = run(model, options, MeshGroups(&group), together);
  });
  for (const Outcome& outcome : all) EXPECT_EQ(outcome, one) << ranks << " workers, ZeRO-" << options.zero;
  EXPECT_EQ(together.tensors(), alone.tensors());
  // Every element of the state has one owner.
  if (split_all) {
    EXPECT_EQ(together.elements(), alone.elements());
  }
}

Model small_gpt() { return build_gpt({1, 48, 2, 101, 2, 9, 0.0}); }

TEST(Split, OnAnyHosts) {
  for (const int zero : {1, 2, 3})
    for (const std::vector<int>& sizes :
         {std::vector{2}, std::vector{3}, std::vector{1, 1}, std::vector{2, 1}, std::vector{1, 1, 1, 1}})
      expect_bits_of_one(small_gpt(), with_stage(zero, 8), sizes);
}

// Of groups that share memory among each other, and of those that could be on several hosts.
void expect_bits_of_one_in_parts(const Model& model, TrainOptions options, int ranks, int part) {
  Collected alone;
  const Outcome one = run(model, options, {}, alone);
  options.zero_group = part;
  for (const bool on_hosts : {true, false}) {
    SCOPED_TRACE(fmt::format("{} workers in groups of {}, {} leaves, ZeRO-{}, each on one host: {}", ranks,
                             part, options.leaves, options.zero, on_hosts));
    std::deque<Collected> together(static_cast<size_t>(ranks / part));
    std::vector<Outcome> all(static_cast<size_t>(ranks));
    testing::on_parts(options.leaves, ranks, part, [&](MeshGroups groups) {
      groups.parts_on_hosts = on_hosts;
      all[static_cast<size_t>(groups.rank)] =
          run(model, options, groups, together[static_cast<size_t>(groups.rank / part)]);
    });
    for (const Outcome& outcome : all) EXPECT_EQ(outcome, one);
    // In every group each element has one owner.
    for (const Collected& state : together) {
      EXPECT_EQ(state.tensors(), alone.tensors());
      EXPECT_EQ(state.elements(), alone.elements());
    }
  }
}

TEST(Split, InGroupsThatHoldEverything) {
  for (const int zero : {1, 2, 3}) {
    expect_bits_of_one_in_parts(small_gpt(), with_stage(zero, 8), 4, 2);
    expect_bits_of_one_in_parts(small_gpt(), with_stage(zero, 4), 4, 2);
    // Groups sum ranges that are no subtrees, in rounds that are not all full.
    expect_bits_of_one_in_parts(small_gpt(), with_stage(zero, 8), 6, 2);
    expect_bits_of_one_in_parts(small_gpt(), with_stage(zero, 8), 6, 3);
  }
}

TEST(Split, InGroupsOnStoredBf16WithAverages) {
  const Model model = stored_in(DType::kBF16, small_gpt());
  for (const int zero : {1, 2, 3}) {
    TrainOptions options = with_stage(zero, 8);
    options.ema = 0.9;
    expect_bits_of_one_in_parts(model, options, 4, 2);
  }
}

TEST(Split, InGroupsTakesWhatIsPlanned) {
  for (const int zero : {1, 2, 3})
    for (const auto& [ranks, part] : {std::pair(4, 2), {6, 2}}) {
      // The plan of stage 1 counts the most partial sums that any worker has.
      if (zero == 1 && ranks == 6) continue;
      testing::on_parts(8, ranks, part, [&, ranks = ranks, part = part](MeshGroups groups) {
        groups.parts_on_hosts = zero == 2;
        const auto backend = make_cpu_backend(1);
        TrainOptions options = with_stage(zero, 8);
        options.ema = 0.9;
        options.microbatches = kMicrobatches;
        options.workers = ranks;
        options.zero_group = part;
        options = options_in(groups, *backend, options);
        const Model model = small_gpt();
        const TrainPlans plans = plan_training(model, *backend, options);
        TrainStep train(model, *backend, options, groups);
        EXPECT_NEAR(static_cast<double>(train_memory(plans, options).bytes()),
                    static_cast<double>(train.planned_bytes()), 64)
            << "ZeRO-" << zero << ", rank " << groups.rank << " of " << ranks;
        groups.all->barrier();
      });
    }
}

TEST(Split, SeveralMicrobatchesPerLeaf) {
  for (const int zero : {1, 2, 3})
    for (const int ranks : {2, 3, 4}) expect_bits_of_one(small_gpt(), with_stage(zero, 4), {ranks});
}

TEST(Split, OneBucket) {
  for (const int zero : {1, 2, 3}) expect_bits_of_one(small_gpt(), with_stage(zero, 8, 0), {1, 2});
}

TEST(Split, DropoutAndAverages) {
  const Model model = build_encoder({.layers = 1,
                                     .dim = 48,
                                     .heads = 2,
                                     .hidden = 96,
                                     .vocab = 61,
                                     .classes = 3,
                                     .batch = 2,
                                     .seq = 9,
                                     .dropout = 0.2});
  for (const int zero : {1, 2, 3}) {
    TrainOptions options = with_stage(zero, 8);
    options.ema = 0.9;
    expect_bits_of_one(model, options, {1, 2});
  }
}

TEST(Split, PureBf16) {
  const Model model = stored_in(DType::kBF16, small_gpt());
  for (const int zero : {1, 2, 3}) {
    TrainOptions options = with_stage(zero, 8);
    options.passes.compute = DType::kBF16;
    options.optimizer.moments = DType::kBF16;
    options.ema = 0.9;
    expect_bits_of_one(model, options, {2, 1});
  }
}

// In bf16 every unit is rounded anew wherever it is used.
TEST(Split, Bf16RecomputedAndRoundedAtRandom) {
  TrainOptions options = with_stage(3, 8);
  options.passes.compute = DType::kBF16;
  for (const Recompute policy : {Recompute::kNone, Recompute::kCheap, Recompute::kBlock}) {
    options.passes.recompute = policy;
    expect_bits_of_one(build_gpt({2, 48, 3, 101, 2, 17, 0.1}), options, {1, 1});
  }
  options.passes.stochastic_rounding = true;
  expect_bits_of_one(build_gpt({2, 48, 3, 101, 2, 17, 0.1}), options, {2, 1});
}

TEST(Split, TablesStayWithEveryWorker) {
  const Model model = build_tabular({2, 400, 8, 3, {9}, {7}, 6});
  TrainOptions options = with_stage(1, 8);
  options.ema = 0.9;
  expect_bits_of_one(model, options, {1, 2}, false);
}

TEST(Split, StatisticsStayWithEveryWorker) {
  expect_bits_of_one(build_resnet({18, 4, 32, 5, 2}), with_stage(1, 4), {1, 2});
}

TEST(SplitLong, EveryOptimizer) {
  for (const char* name : {"sgd", "adam", "adamw", "lion"})
    for (const int zero : {1, 2, 3})
      for (const int ranks : {2, 3, 4}) {
        SCOPED_TRACE(name);
        TrainOptions options = with_stage(zero, 4);
        options.optimizer.name = name;
        options.ema = 0.9;
        expect_bits_of_one(small_gpt(), options, {ranks});
      }
}

TEST(SplitLong, LlamaAndTiedGptOnEveryMapOfHosts) {
  const Model llama = build_llama({.layers = 2,
                                   .dim = 48,
                                   .heads = 6,
                                   .kv_heads = 2,
                                   .hidden = 100,
                                   .vocab = 101,
                                   .batch = 2,
                                   .seq = 17,
                                   .tied = true});
  for (const int zero : {1, 2, 3})
    for (const int ranks : {2, 3, 4})
      for (const std::vector<int>& sizes : testing::all_host_maps(ranks))
        for (const Model* model : {&llama}) {
          expect_bits_of_one(*model, with_stage(zero, 8), sizes);
          expect_bits_of_one(build_gpt({2, 48, 3, 101, 2, 17, 0.1}), with_stage(zero, 8), sizes);
        }
}

TEST(Split, TakesWhatIsPlanned) {
  for (const int zero : {0, 1, 2, 3})
    for (const int64_t leaves : {4, 8})
      for (const std::vector<int>& sizes : {std::vector{2}, std::vector{1, 1, 1, 1}}) {
        int ranks = 0;
        for (const int size : sizes) ranks += size;
        testing::on_hosts(sizes, LeafSplit::search(leaves, ranks), [&](Group& group) {
          const auto backend = make_cpu_backend(1);
          TrainOptions options = with_stage(zero, leaves);
          options.ema = 0.9;
          options.microbatches = kMicrobatches;
          options.workers = group.size();
          options = options_in(&group, *backend, options);
          const Model model = small_gpt();
          const TrainPlans plans = plan_training(model, *backend, options);
          TrainStep train(model, *backend, options, &group);
          EXPECT_NEAR(static_cast<double>(train_memory(plans, options).bytes()),
                      static_cast<double>(train.planned_bytes()), 64)
              << "ZeRO-" << zero << ", " << leaves << " leaves, rank " << group.rank() << " of " << ranks;
          group.barrier();
        });
      }
}

// Per parameter in fp32: of two moments 1/N, of the sums of gradients as many as the leaves need; the
// gradients of a microbatch pass by.
TEST(Split, HoldsAnNthOfWhatIsSplit) {
  const auto backend = make_null_backend();
  const Model model = build_gpt({4, 256, 4, 1024, 2, 9, 0.0});
  const auto planned = [&](int zero) {
    TrainOptions options = with_stage(zero, 8, 64 << 10);
    options.microbatches = options.leaves;
    options.workers = 8;
    return train_memory(plan_training(model, *backend, options), options);
  };
  const TrainMemory whole = planned(0), first = planned(1), second = planned(2);
  EXPECT_EQ(first.parameters, whole.parameters);
  EXPECT_NEAR(static_cast<double>(first.state), static_cast<double>(whole.state) / 8,
              0.03 * static_cast<double>(whole.state));
  EXPECT_NEAR(static_cast<double>(second.state), static_cast<double>(first.state),
              0.03 * static_cast<double>(whole.state));
  // A whole gradient before; then an eighth of it, and what is on its way.
  EXPECT_NEAR(static_cast<double>(second.gradients), static_cast<double>(whole.gradients) / 8,
              0.05 * static_cast<double>(whole.gradients));
  EXPECT_LT(static_cast<double>(second.gradients + second.arena),
            0.6 * static_cast<double>(whole.gradients + whole.arena));
}

// Packing loses little of what is alive at once, whatever is split.
TEST(Split, PlansAreWithinATenthOfTheLowerBound) {
  const auto backend = make_null_backend();
  const Model model = build_gpt({8, 256, 4, 1024, 2, 128, 0.1});
  for (const int zero : {0, 1, 2, 3})
    for (const int pipeline : {1, 4})
      for (const Recompute recompute : {Recompute::kNone, Recompute::kBlock}) {
        TrainOptions options = with_stage(zero, 2, 64 << 10);
        options.microbatches = 8;
        options.workers = 2;
        options.mesh = {.data = 2, .pipeline = pipeline};
        options.passes.recompute = recompute;
        const TrainMemory memory = train_memory(plan_training(model, *backend, options), options);
        EXPECT_LE(static_cast<double>(memory.bytes()), 1.1 * static_cast<double>(memory.lower_bound()))
            << "ZeRO-" << zero << ", " << pipeline << " stages, recompute " << name_of(recompute);
      }
}

// Of the parameters an eighth too, and in the arena two blocks of six at a time.
TEST(Split, HoldsAnNthOfTheParametersAndTwoUnits) {
  const auto backend = make_null_backend();
  const Model model = build_gpt({6, 256, 4, 1024, 2, 9, 0.0});
  const auto planned = [&](int zero) {
    TrainOptions options = with_stage(zero, 8, 64 << 10);
    options.microbatches = options.leaves;
    options.workers = 8;
    return train_memory(plan_training(model, *backend, options), options);
  };
  const TrainMemory second = planned(2), third = planned(3);
  EXPECT_NEAR(static_cast<double>(third.parameters), static_cast<double>(second.parameters) / 8,
              0.03 * static_cast<double>(second.parameters));
  EXPECT_NEAR(static_cast<double>(third.state), static_cast<double>(second.state),
              0.03 * static_cast<double>(second.state));
  constexpr double kBlock = 12.0 * 256 * 256 * 4;
  EXPECT_LT(static_cast<double>(third.arena - second.arena), 2.1 * kBlock);
}

std::string refusal(const Model& model, const TrainOptions& options) {
  try {
    plan_training(model, *make_null_backend(), options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Split, SaysWhatItCannotSplit) {
  TrainOptions options = with_stage(1, 1);
  options.workers = 2;
  options.optimizer.name = "lamb";
  EXPECT_NE(refusal(small_gpt(), options).find("lamb needs norms or means of whole ones"), std::string::npos);
  options = with_stage(2, 1);
  EXPECT_NE(refusal(build_tabular({2, 400, 8, 3, {9}, {7}, 6}), options).find("are lists of rows"),
            std::string::npos);
  EXPECT_NE(refusal(build_resnet({18, 4, 32, 5, 2}), options).find("running statistics"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
