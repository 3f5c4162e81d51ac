// Training on a device that has memory of its own and runs late gives the processor's bits.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>

#include "backend/device_sharing.h"
#include "base/error.h"
#include "comm/mesh_testing.h"
#include "comm/ranks_testing.h"
#include "comm/wire/wire_testing.h"
#include "data/open/open.h"
#include "device/late_backend.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/stored_params.h"
#include "model/tabular.h"
#include "train/evaluate/evaluate.h"
#include "train/evaluate/evaluation_units.h"
#include "train/state/run_downloads.h"
#include "train/state/state_hash.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 3;
constexpr int64_t kMicrobatches = 6;

struct Outcome {
  std::string hash;
  double loss = 0;
  double norm = 0;
  int64_t count = 0;
  bool operator==(const Outcome&) const = default;
};

using MakeBackend = std::unique_ptr<Backend> (*)(int threads);

Outcome train_on(Backend& backend, const Model& model, TrainOptions options, const MeshGroups& groups,
                 const std::string& route = "late_ipc") {
  const Group* const group = groups.data;
  options.microbatches = kMicrobatches;
  options.leaves = std::max<int64_t>(options.leaves, 3);
  options.ema = 0.9;
  options.seed = 5;
  if (options.reduce.bucket_bytes == 0) options.reduce.bucket_bytes = 4096;
  options.workers = group == nullptr ? 1 : group->size();
  TrainStep train(model, backend, options, groups);
  if (backend.sharing() != nullptr && group != nullptr) {
    EXPECT_EQ(train.device_route(), route);
  }
  StepResult result;
  for (int64_t step = 1; step <= kSteps; ++step)
    result =
        train.run(1e-2, [&](int64_t m) { set_synthetic_inputs(train, model, 11, step * kMicrobatches + m); });
  std::string hash = train.weights_sha256();
  // The weights say enough where every worker has a piece of the rest.
  if (options.zero == 0)
    hash += sha256_of(backend, train.state().optimizer()) + sha256_of(backend, train.state().averages());
  return {hash, result.loss, result.grad_norm, result.count};
}

void expect_the_same_bits(const Model& model, const TrainOptions& options = {}) {
  const auto cpu = make_cpu_backend(2);
  const Outcome want = train_on(*cpu, model, options, {});
  EXPECT_EQ(train_on(*testing::make_late_backend(2), model, options, {}), want);
  for (const MakeBackend make : {testing::make_late_backend, testing::make_sharing_late_backend}) {
    std::vector<Outcome> all(3);
    testing::on_threads(LeafSplit::search(std::max<int64_t>(options.leaves, 3), 3), [&](Group& group) {
      all[static_cast<size_t>(group.rank())] = train_on(*make(1), model, options, MeshGroups(&group));
    });
    for (const Outcome& outcome : all) EXPECT_EQ(outcome, want);
  }
}

// Workers of several hosts: neighbours reach each other's memory, the others send.
void expect_the_same_bits_on_hosts(const std::vector<int>& sizes, const Model& model,
                                   const TrainOptions& options) {
  const Outcome want = train_on(*make_cpu_backend(2), model, options, {});
  const int ranks = std::accumulate(sizes.begin(), sizes.end(), 0);
  std::vector<Outcome> all(static_cast<size_t>(ranks));
  testing::on_hosts(sizes, LeafSplit::search(std::max<int64_t>(options.leaves, 3), ranks), [&](Group& group) {
    const bool alone = sizes.size() == static_cast<size_t>(ranks);
    const std::string route = alone ? "late_post" : "late_ipc and late_post";
    all[static_cast<size_t>(group.rank())] =
        train_on(*testing::make_sending_late_backend(1), model, options, MeshGroups(&group), route);
  });
  for (const Outcome& outcome : all) EXPECT_EQ(outcome, want);
}

// Four workers in groups of two that hold everything.
void expect_the_same_bits_in_groups(const Model& model, TrainOptions options) {
  options.leaves = kMicrobatches;
  const Outcome want = train_on(*make_cpu_backend(2), model, options, {});
  options.zero_group = 2;
  for (const MakeBackend make : {testing::make_late_backend, testing::make_sharing_late_backend}) {
    std::vector<Outcome> all(4);
    testing::on_parts(options.leaves, 4, 2, [&](const MeshGroups& groups) {
      all[static_cast<size_t>(groups.rank)] = train_on(*make(1), model, options, groups);
    });
    for (const Outcome& outcome : all) EXPECT_EQ(outcome, want);
  }
}

TEST(LateDevice, Gpt) { expect_the_same_bits(build_gpt({2, 48, 3, 101, 2, 17, 0.1})); }

TEST(LateDevice, GptInBf16WithStochasticRounding) {
  TrainOptions options;
  options.passes.compute = DType::kBF16;
  options.passes.stochastic_rounding = true;
  expect_the_same_bits(build_gpt({2, 48, 3, 101, 2, 17, 0.1}), options);
}

TEST(LateDevice, PureBf16WithRunningStatistics) {
  TrainOptions options;
  options.passes.compute = DType::kBF16;
  options.optimizer.moments = DType::kBF16;
  expect_the_same_bits(stored_in(DType::kBF16, build_gpt({2, 48, 3, 101, 2, 17, 0.1})), options);
  expect_the_same_bits(stored_in(DType::kBF16, build_resnet({18, 4, 32, 5, 2})), options);
}

TEST(LateDevice, Llama) {
  expect_the_same_bits(build_llama({.layers = 2,
                                    .dim = 48,
                                    .heads = 6,
                                    .kv_heads = 2,
                                    .hidden = 100,
                                    .vocab = 101,
                                    .batch = 2,
                                    .seq = 17,
                                    .tied = true}));
}

TEST(LateDevice, Encoder) { expect_the_same_bits(build_encoder({2, 48, 3, 192, 61, 3, 2, 19, 0.1, true})); }

TEST(LateDevice, TabularWithRowsCaughtUpLate) {
  expect_the_same_bits(build_tabular({3, 301, 16, 5, {33, 17}, {40, 20}, 23}));
}

TEST(LateDevice, ResnetWithRunningStatistics) { expect_the_same_bits(build_resnet({18, 4, 32, 5, 2})); }

TEST(LateDevice, WhereWorkersOwnPiecesOfTheState) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  for (const int zero : {1, 2, 3}) {
    TrainOptions options;
    options.zero = zero;
    expect_the_same_bits(model, options);
    options.passes.compute = DType::kBF16;
    expect_the_same_bits(stored_in(DType::kBF16, model), options);
  }
}

TEST(LateDevice, WhereGroupsOfWorkersOwnAll) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  for (const int zero : {1, 2, 3}) {
    TrainOptions options;
    options.zero = zero;
    expect_the_same_bits_in_groups(model, options);
    options.passes.compute = DType::kBF16;
    expect_the_same_bits_in_groups(stored_in(DType::kBF16, model), options);
  }
}

TEST(LateDevice, StateInTheHostsMemory) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  TrainOptions options;
  options.optimizer.offloaded = true;
  for (const int zero : {0, 1, 3}) {
    options.zero = zero;
    expect_the_same_bits(model, options);
  }
  options.zero = 0;
  const auto device = testing::make_late_backend(1);
  TrainStep train(model, *device, options);
  for (const std::vector<StateTensor>* tensors : {&train.state().optimizer(), &train.state().averages()})
    for (const StateTensor& tensor : *tensors)
      for (const StatePiece& piece : pieces_of(tensor))
        static_cast<void>(*static_cast<volatile char*>(piece.data));  // the device's would fault
}

// Workers with several partial sums of different sizes, and rounds that end in the middle of the tree.
TEST(LateDevice, LeavesThatWorkersDoNotDivide) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  for (const int zero : {0, 1, 2, 3}) {
    TrainOptions options;
    options.zero = zero;
    options.leaves = kMicrobatches;
    expect_the_same_bits(model, options);
  }
  TrainOptions pure;
  pure.leaves = kMicrobatches;
  pure.zero = 2;
  pure.passes.compute = DType::kBF16;
  expect_the_same_bits(stored_in(DType::kBF16, model), pure);
}

TEST(LateDevice, WorkersOfSeveralHosts) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  for (const int zero : {0, 1, 2, 3}) {
    TrainOptions options;
    options.zero = zero;
    options.leaves = kMicrobatches;
    for (const auto& sizes : {std::vector{1, 1, 1}, {2, 1}, {2, 2}, {1, 3}, {2, 1, 1}}) {
      // Of some a slice for everybody, of others for one.
      options.reduce.bucket_bytes = options.reduce.bucket_bytes == 4096 ? 32768 : 4096;
      SCOPED_TRACE(fmt::format("zero {}, hosts of {}", zero, fmt::join(sizes, " and ")));
      expect_the_same_bits_on_hosts(sizes, model, options);
    }
  }
  TrainOptions pure;
  pure.leaves = kMicrobatches;
  pure.zero = 2;
  pure.passes.compute = DType::kBF16;
  expect_the_same_bits_on_hosts({2, 1}, stored_in(DType::kBF16, model), pure);
}

// Two hosts whose workers hold everything together: what the hosts have is added up by messages.
TEST(LateDevice, GroupsOnSeveralHosts) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  for (const int zero : {1, 2, 3}) {
    SCOPED_TRACE(fmt::format("zero {}", zero));
    TrainOptions options;
    options.leaves = kMicrobatches;
    options.zero = zero;
    const Outcome want = train_on(*make_cpu_backend(2), model, options, {});
    options.zero_group = 2;
    std::deque<shm::ThreadMeeting> parts, places;
    for (int i = 0; i < 2; ++i) {
      parts.emplace_back(2);
      places.emplace_back(2);
    }
    std::vector<Outcome> all(4);
    testing::on_hosts({2, 2}, LeafSplit::search(kMicrobatches, 4), [&](Group& group) {
      const int own = group.rank() / 2, place = group.rank() % 2;
      Group owners(parts[static_cast<size_t>(own)].join(place, testing::options_on({own * 2, 1, 2})),
                   LeafSplit::one_each(2), "part");
      Group replicas(std::make_unique<wire::HostsTransport>(
                         testing::hosts_of({1, 1}), nullptr,
                         places[static_cast<size_t>(place)].join(own, testing::options_on({place, 2, 2}))),
                     LeafSplit::search(kMicrobatches, 2), "replicas");
      MeshGroups groups(&group);
      groups.part = &owners;
      groups.replicas = &replicas;
      groups.parts_on_hosts = true;
      all[static_cast<size_t>(group.rank())] =
          train_on(*testing::make_sending_late_backend(1), model, options, groups,
                   zero == 1 ? "late_ipc; between groups late_ipc and late_post"
                             : "late_ipc; between groups late_post");
      group.barrier();
    });
    for (const Outcome& outcome : all) EXPECT_EQ(outcome, want);
  }
}

TEST(LateDevice, SumsOfTheLibraryInFastOrder) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  TrainOptions options;
  options.leaves = kMicrobatches;
  options.reduce.order = SumOrder::kFast;
  const Outcome near = train_on(*make_cpu_backend(2), model, options, {});
  std::vector<Outcome> all(4);
  testing::on_hosts({2, 2}, LeafSplit::search(kMicrobatches, 4), [&](Group& group) {
    all[static_cast<size_t>(group.rank())] = train_on(*testing::make_sending_late_backend(1), model, options,
                                                      MeshGroups(&group), "late_ipc and late_post");
  });
  for (const Outcome& outcome : all) EXPECT_EQ(outcome, all[0]);
  EXPECT_NEAR(all[0].loss, near.loss, 1e-4);
}

// Messages where memory could be reached: the job says so.
TEST(LateDevice, MessagesAlone) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  TrainOptions options;
  options.leaves = 3;
  const Outcome want = train_on(*make_cpu_backend(2), model, options, {});
  options.reduce.way.route = DeviceRoute::kMessages;
  testing::on_threads(LeafSplit::search(3, 3), [&](Group& group) {
    EXPECT_EQ(
        train_on(*testing::make_sending_late_backend(1), model, options, MeshGroups(&group), "late_post"),
        want);
    EXPECT_THROW(TrainStep(model, *testing::make_sharing_late_backend(1), options, &group), UserError);
  });
}

// The others do not wait for messages that will not come, and say who has failed.
TEST(LateDevice, AWorkerWhoseMessagesFailBreaksTheGroup) {
  const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
  TrainOptions options;
  options.microbatches = options.leaves = options.workers = 3;
  options.reduce.bucket_bytes = 32768;
  options.reduce.way.deadline = std::chrono::milliseconds(300);
  const auto errors = testing::run_hosts({1, 2}, LeafSplit::search(3, 3), [&](Group& group) {
    const auto backend = testing::make_sending_late_backend(1, group.rank() == 1 ? 3 : 0);
    TrainStep train(model, *backend, options, &group);
    train.run(1e-2, [&](int64_t m) { set_synthetic_inputs(train, model, 11, m); });
  });
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    ASSERT_TRUE(errors[rank]) << rank;
    std::string message;
    try {
      std::rethrow_exception(errors[rank]);
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(rank == 1 ? "message 3 was made to fail" : "rank 1"), std::string::npos)
        << message;
  }
}

// The others hear of one that is gone, whoever waits for whom.
TEST(LateDevice, AWorkerThatDiesBreaksTheGroup) {
  const LeafSplit split = LeafSplit::search(3, 3);
  const std::string name = shm::random_meeting_name();
  const auto body = [&](Group& group) {
    const Model model = build_gpt({2, 48, 3, 101, 2, 17, 0.1});
    const auto backend = testing::make_sharing_late_backend(1);
    TrainOptions options;
    options.microbatches = options.leaves = options.workers = 3;
    options.reduce.bucket_bytes = 4096;
    TrainStep train(model, *backend, options, &group);
    const auto step = [&](int64_t number) {
      train.run(1e-2, [&](int64_t m) {
        if (number == 2 && group.rank() == 1) _exit(7);
        set_synthetic_inputs(train, model, 11, number * 3 + m);
      });
    };
    step(1);
    const std::string message = testing::peer_error(1, [&] { step(2); });
    // What this device has not run yet needs the kernels, which go with the step.
    for (const StreamKind kind : {StreamKind::kCompute, StreamKind::kCommunication, StreamKind::kCopy})
      backend->stream(kind).synchronize();
    return message.find("rank 1") == std::string::npos ? 1 : 0;
  };
  std::vector<testing::Child> children;
  for (int rank = 0; rank < 3; ++rank)
    children.push_back(testing::fork_rank(name, rank, split, testing::test_options(), body));
  EXPECT_EQ(children[0].wait(), 0);
  EXPECT_EQ(children[1].wait(), 7);
  EXPECT_EQ(children[2].wait(), 0);
}

TEST(LateDevice, TheHostsMemoryWhereTheJobSaysSo) {
  testing::on_threads(LeafSplit::search(3, 3), [&](Group& group) {
    const Model model = build_gpt({1, 48, 3, 101, 2, 17, 0.1});
    TrainOptions options;
    options.microbatches = options.leaves = options.workers = 3;
    options.reduce.way.route = DeviceRoute::kHost;
    const auto sharing = testing::make_sharing_late_backend(1);
    EXPECT_EQ(TrainStep(model, *sharing, options, &group).device_route(),
              "memory of the host (as strategy.transport says)");
    options.reduce.way.route = DeviceRoute::kDevice;
    const auto apart = testing::make_late_backend(1);
    EXPECT_THROW(TrainStep(model, *apart, options, &group), UserError);
  });
}

// What all workers together hold of parameters, optimizer state and averages.
class Collected {
 public:
  void add(Backend& backend, const TrainState& state) {
    const std::lock_guard lock(mutex_);
    for (const auto* tensors : {&state.params(), &state.optimizer(), &state.averages()})
      for (const StateTensor& tensor : *tensors) {
        std::vector<char>& bytes = tensors_[tensor.name];
        bytes.resize(static_cast<size_t>(tensor.bytes()));
        const int64_t element = size_of(tensor.dtype);
        for (const StatePiece& piece : pieces_of(tensor))
          backend.download(bytes.data() + piece.first * element, piece.data, piece.count * element);
      }
  }
  const std::map<std::string, std::vector<char>>& tensors() const { return tensors_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<char>> tensors_;
};

StepResult train_part(Backend& backend, const Model& model, TrainOptions options, const MeshGroups& groups,
                      Collected& state) {
  options.microbatches = 8;
  options.leaves = 4;
  options.ema = 0.9;
  options.seed = 5;
  options.reduce.bucket_bytes = 4096;
  options.mesh = groups.shape;
  options.workers = groups.shape.data;
  TrainStep train(model, backend, options, groups);
  if (groups.tensor != nullptr) {
    const bool reach = backend.sharing() != nullptr && options.reduce.way.route == DeviceRoute::kAuto;
    EXPECT_EQ(train.device_route().ends_with("between tensor ranks late_ipc"), reach) << train.device_route();
  }
  StepResult result;
  for (int64_t step = 1; step <= kSteps; ++step)
    result = train.run(1e-2, [&](int64_t m) { set_synthetic_inputs(train, model, 11, step * 8 + m); });
  state.add(backend, train.state());
  return result;
}

std::vector<StepResult> train_mesh(const MeshShape& shape, MakeBackend make, const Model& model,
                                   const TrainOptions& options, Collected& state) {
  testing::MeshMeeting lines;
  shm::ThreadMeeting all(shape.ranks());
  std::vector<StepResult> results(static_cast<size_t>(shape.ranks()));
  std::vector<std::exception_ptr> errors(results.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < shape.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        Group ranks(all.join(rank, testing::test_options()), LeafSplit::one_each(shape.ranks()));
        const Mesh mesh(shape, rank, LeafSplit::search(4, shape.data), lines.join());
        results[static_cast<size_t>(rank)] =
            train_part(*make(1), model, options, MeshGroups(ranks, mesh), state);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  testing::expect_no_errors(errors);
  return results;
}

// A mesh of late devices beside one processor. Those who share leaves or layers reach each other.
void expect_the_same_bits_in(const MeshShape& shape, const Model& model, const TrainOptions& options) {
  const bool reach = shape.data > 1 || shape.tensor > 1;
  const MakeBackend make = reach ? testing::make_sharing_late_backend : testing::make_late_backend;
  SCOPED_TRACE(fmt::format("{}, ZeRO-{}, {}", shape.text(), options.zero, name_of(options.schedule)));
  Collected alone, together;
  const auto cpu = make_cpu_backend(2);
  const StepResult want = train_part(*cpu, model, options, {}, alone);
  const std::vector<StepResult> results = train_mesh(shape, make, model, options, together);
  for (const StepResult& result : results) {
    EXPECT_EQ(result.loss, want.loss);
    EXPECT_EQ(result.grad_norm, want.grad_norm);
    EXPECT_EQ(result.count, want.count);
  }
  EXPECT_EQ(together.tensors(), alone.tensors());
}

TrainOptions with(int zero, PipelineSchedule schedule = PipelineSchedule::k1F1B) {
  TrainOptions options;
  options.zero = zero;
  options.schedule = schedule;
  if (schedule == PipelineSchedule::kInterleaved) options.chunks = 2;
  return options;
}

// Tied weights, which a later stage has a copy of.
Model four_blocks() { return build_gpt({4, 48, 2, 101, 2, 9, 0.1}); }

TEST(LateDevice, StagesOfAPipeline) {
  for (const PipelineSchedule schedule : {PipelineSchedule::kGpipe, PipelineSchedule::k1F1B,
                                          PipelineSchedule::kInterleaved, PipelineSchedule::kZeroBubble})
    expect_the_same_bits_in({.pipeline = 2}, four_blocks(), with(0, schedule));
  expect_the_same_bits_in({.data = 2, .pipeline = 2}, four_blocks(), with(0));
  expect_the_same_bits_in({.pipeline = 3}, stored_in(DType::kBF16, four_blocks()), [] {
    TrainOptions pure = with(0, PipelineSchedule::kZeroBubble);
    pure.passes.compute = DType::kBF16;
    return pure;
  }());
}

TEST(LateDevice, StagesWhoseWorkersOwnPiecesOfTheState) {
  for (const int zero : {1, 2, 3})
    for (const PipelineSchedule schedule : {PipelineSchedule::k1F1B, PipelineSchedule::kZeroBubble})
      expect_the_same_bits_in({.data = 2, .pipeline = 2}, four_blocks(), with(zero, schedule));
}

TEST(LateDevice, TensorRanks) {
  const auto in_leaves = [](TrainOptions options) {
    options.tensor_leaves = 2;
    return options;
  };
  for (const int zero : {0, 1, 2, 3})
    expect_the_same_bits_in({.data = 2, .tensor = 2}, four_blocks(), in_leaves(with(zero)));
  TrainOptions blocks = in_leaves(with(0));
  blocks.passes.compute = DType::kBF16;
  expect_the_same_bits_in({.tensor = 2}, four_blocks(), blocks);
  expect_the_same_bits_in({.pipeline = 2, .tensor = 2}, four_blocks(), in_leaves(with(0)));
  expect_the_same_bits_in({.data = 2, .pipeline = 2, .tensor = 2}, four_blocks(), in_leaves(with(1)));
  // A vocabulary that is cut, and more ranks.
  blocks.tensor_leaves = 4;
  const Model llama = build_llama(
      {.layers = 2, .dim = 48, .heads = 8, .kv_heads = 4, .hidden = 64, .vocab = 100, .batch = 2, .seq = 9});
  for (const int ranks : {2, 4}) expect_the_same_bits_in({.tensor = ranks}, llama, blocks);
}

TEST(LateDevice, TensorRanksThroughTheHost) {
  TrainOptions options = with(0);
  options.tensor_leaves = 2;
  options.reduce.way.route = DeviceRoute::kHost;
  expect_the_same_bits_in({.tensor = 2}, four_blocks(), options);
}

// Of two leaves of a matrix of four rows, and of what lies apart from them.
TEST(LateDevice, RunsOfLeavesComeInOneTransfer) {
  const auto device = testing::make_late_backend(1);
  const auto memory = device->allocate(64);
  std::vector<std::byte> stored(64), whole(24);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::byte>(i);
  device->upload(memory->data(), stored.data(), 64);
  const auto* const at = static_cast<const std::byte*>(memory->data());
  RunDownloads downloads(*device);
  // Rows of four bytes, of which each leaf has two; then eight more.
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t leaf = 0; leaf < 2; ++leaf)
      downloads.add(whole.data() + row * 4 + leaf * 2, at + leaf * 8 + row * 2, 2);
  downloads.add(whole.data() + 16, at + 48, 8);
  EXPECT_EQ(downloads.finish(), 2);
  for (size_t row = 0; row < 4; ++row)
    for (size_t leaf = 0; leaf < 2; ++leaf)
      for (size_t i = 0; i < 2; ++i) EXPECT_EQ(whole[row * 4 + leaf * 2 + i], stored[leaf * 8 + row * 2 + i]);
  EXPECT_TRUE(std::equal(whole.begin() + 16, whole.end(), stored.begin() + 48));
  EXPECT_EQ(downloads.finish(), 0);
}

// Weights that the host has, in units that come into memory of the device.
TEST(LateDevice, AnEvaluationUnitByUnit) {
  constexpr int64_t kRecords = 7, kBatch = 2;
  const auto build = [](int64_t batch) { return build_gpt({3, 48, 3, 31, batch, 9, 0.1, false}); };
  DataOptions data;
  data.format = DataOptions::Format::kPatternTokens;
  data.train.samples = 20;
  data.eval.samples = kRecords;
  data.seq = 9;
  data.vocab = 31;
  const std::shared_ptr<const Source> records = open_data(data).eval;
  const auto cpu = make_cpu_backend(1);
  const TrainStep train(build_gpt({3, 48, 3, 31, kBatch, 9, 0.1}), *cpu, {});
  const TrainState& state = train.state_as_it_lies();
  const auto evaluated = [&](Backend& backend, const PassOptions& passes) {
    Evaluator evaluator(build, backend, passes, kBatch, kRecords);
    UnitReader reader(
        backend, passes.units,
        [&](std::string_view name) -> const StateTensor& { return state.evaluated_tensor(name); },
        [](const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
          std::memcpy(into.data(), static_cast<const char*>(tensor.data) + first, into.size());
        });
    evaluator.gather_with(reader);
    return evaluator.run(*records, [&](std::string_view name) { return state.evaluated(name); });
  };
  PassOptions in_units;
  in_units.units = evaluation_units(
      build(kBatch).graph, [](std::string_view) { return false; }, 4096);
  ASSERT_GE(in_units.units.size(), 4u);
  const EvalResult want = evaluated(*cpu, {});
  for (const MakeBackend make : {make_cpu_backend, testing::make_late_backend}) {
    const EvalResult found = evaluated(*make(2), in_units);
    EXPECT_EQ(found.loss, want.loss);
    EXPECT_EQ(found.accuracy, want.accuracy);
  }
}

// What makes the tests above mean something.
TEST(LateDeviceDeathTest, TheHostFaultsOnItsMemory) {
  const auto backend = testing::make_late_backend(1);
  const auto buffer = backend->allocate(64);
  EXPECT_DEATH(*static_cast<volatile char*>(buffer->data()) = 1, "");
}

TEST(LateDevice, NothingRunsBeforeSomebodyWaits) {
  const auto backend = testing::make_late_backend(1);
  const auto pinned = backend->allocate(8, MemoryKind::kPinned);
  const auto device = backend->allocate(8);
  auto* const value = static_cast<int64_t*>(pinned->data());
  *value = 7;
  backend->compute().copy(device->data(), value, sizeof *value);
  const EventPtr copied = backend->compute().record();
  *value = 8;  // too early, as the copy shows
  copied->wait();
  int64_t seen = 0;
  backend->download(&seen, device->data(), sizeof seen);
  EXPECT_EQ(seen, 8);
}

}  // namespace
}  // namespace lockstep
