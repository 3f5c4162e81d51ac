#include "run/comm_report.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "comm/simd/codec_loops.h"
#include "comm/simd/sum_loops.h"
#include "train/sums/topk_sums.h"

namespace lockstep {
namespace {

constexpr int64_t kValues = 1 << 18;  // a MiB
constexpr double kFloat = sizeof(float);

// The fastest of some turns.
template <typename Body>
double milliseconds(const Body& body) {
  using Clock = std::chrono::steady_clock;
  double least = 0;
  for (int turn = 0; turn < 5; ++turn) {
    const auto start = Clock::now();
    body();
    const double took = 1e3 * std::chrono::duration<double>(Clock::now() - start).count();
    least = turn == 0 ? took : std::min(least, took);
  }
  return least;
}

struct Coding {
  double coding_ms = 0, own_ms = 0;
};

// Of a MiB: partial sums are coded, the root decoded; `leaves` are rounded by the worker itself, instead of
// being added.
Coding time_of(GradientCodec codec, double share, double leaves) {
  const comm::CodecLoops& loops = comm::codec_loops();
  std::vector<float> values(kValues), other(kValues);
  for (int64_t i = 0; i < kValues; ++i) values[static_cast<size_t>(i)] = static_cast<float>(i % 977) - 488.0f;
  std::vector<std::byte> coded(static_cast<size_t>(kValues * 2));
  auto* const narrow = reinterpret_cast<uint16_t*>(coded.data());
  constexpr int64_t kBlocks = kValues / comm::kInt8Values;
  float* const terms[] = {other.data(), values.data()};
  const double add =
      milliseconds([&] { comm::sum_loops().add2_f32(other.data(), other.data(), values.data(), kValues); });
  switch (codec) {
    case GradientCodec::kBf16:
      return {milliseconds([&] {
                loops.encode_bf16(narrow, values.data(), kValues);
                loops.decode_bf16(other.data(), narrow, kValues);
              }),
              leaves * std::max(0.0, milliseconds([&] { loops.merge_bf16(terms, 2, kValues); }) - add)};
    case GradientCodec::kInt8:
      return {milliseconds([&] {
                loops.encode_int8(coded.data(), values.data(), kBlocks);
                loops.decode_int8(other.data(), coded.data(), kBlocks);
              }),
              leaves * std::max(0.0, milliseconds([&] { loops.merge_int8(terms, 2, kValues); }) - add)};
    default:
      return {milliseconds([&] {
                for (int64_t block = 0; block < kBlocks; ++block)
                  loops.select_top(narrow, values.data() + block * comm::kInt8Values,
                                   TopkSums::per_block(share));
              }),
              0};
  }
}

// Bytes on the wire for a gradient, beside those of f32 that all schemes of an exchange have alike.
double bytes_of(GradientCodec codec, double topk, int64_t workers) {
  const auto block = static_cast<double>(comm::kInt8Values);
  switch (codec) {
    case GradientCodec::kBf16: return 2;
    case GradientCodec::kInt8: return static_cast<double>(comm::kInt8Bytes) / block;
    case GradientCodec::kTopk: {
      // Values travel there and back, indices once.
      const double k = static_cast<double>(TopkSums::per_block(topk)) / block;
      const auto p = static_cast<double>(std::max<int64_t>(2, workers));
      return k * (kFloat + sizeof(uint16_t) / (2 * (p - 1) / p));
    }
    default: return kFloat;
  }
}

// The same in the mean of the `steps` last steps, of which those of a warm-up send all there is.
double mean_bytes(const ReduceOptions& reduce, int64_t workers, int64_t applied, int64_t steps) {
  if (!has_feedback(reduce.codec)) return bytes_of(reduce.codec, reduce.topk, workers);
  double sum = 0;
  for (int64_t step = std::max<int64_t>(1, applied - steps + 1); step <= applied; ++step)
    sum += step <= reduce.warmup ? kFloat : bytes_of(reduce.codec, TopkShare(reduce).at(step), workers);
  return sum / static_cast<double>(std::min(steps, applied));
}

}  // namespace

std::vector<PipelineStageTimes> stage_times(const PipelineRunner& own, const MeshGroups& groups,
                                            const Workers& workers) {
  const std::vector<PipelineRunner::Work> work(own.work().begin(), own.work().end());
  const auto kinds = work.size(), stage = static_cast<size_t>(groups.coordinate(MeshAxis::kPipeline));
  const bool tells = groups.coordinate(MeshAxis::kData) + groups.coordinate(MeshAxis::kTensor) == 0;
  std::vector<int64_t> nanoseconds(static_cast<size_t>(groups.shape.pipeline) * kinds, 0);
  for (size_t kind = 0; tells && kind < kinds; ++kind)
    if (work[kind].microbatches > 0)
      nanoseconds[stage * kinds + kind] =
          std::llround(1e9 * work[kind].seconds / static_cast<double>(work[kind].microbatches));
  workers.add_up(nanoseconds, "times of stages");
  std::vector<PipelineStageTimes> times;
  for (size_t first = 0; first < nanoseconds.size(); first += kinds) {
    const auto ms = [&](ActionKind kind) {
      return 1e-6 * static_cast<double>(nanoseconds[first + static_cast<size_t>(kind)]);
    };
    times.push_back({.forward_ms = ms(ActionKind::kForward),
                     .backward_ms = ms(ActionKind::kBackward),
                     .input_gradients_ms = ms(ActionKind::kInputGradients),
                     .weight_gradients_ms = ms(ActionKind::kWeightGradients)});
  }
  return times;
}

int64_t count_hosts(Group& group) {
  const std::optional<HostPlace> place = group.host();
  int64_t first = !place || place->index == 0 ? 1 : 0;
  void* const own = &first;
  group.all_reduce(
      {.type = SumType::kI64, .count = 1, .partials = {&own, 1}, .order = SumOrder::kFast, .label = "hosts"});
  return first;
}

std::optional<CommunicationSummary> communication_summary(const JobParts& parts, const TrainStep& train,
                                                          CommSetting setting, double step_ms) {
  const CommProfile* const profile = train.comm_profile();
  // powersgd sends nothing by buckets.
  if (profile == nullptr || profile->steps() == 0 || parts.options.reduce.codec == GradientCodec::kPowersgd)
    return std::nullopt;
  const auto steps = static_cast<double>(profile->steps());
  const ReduceOptions& reduce = parts.options.reduce;
  std::vector<CommBucket> buckets;
  for (size_t i = 0; i < profile->buckets().size(); ++i) {
    const CommProfile::Bucket& times = profile->buckets()[i];
    const Slice elements = train.buckets()[static_cast<int64_t>(i)];
    buckets.push_back(
        {.bytes = train.layout().sums_offset(elements.end) - train.layout().sums_offset(elements.begin),
         .ahead_ms = 1e3 * times.ahead / steps,
         .transfer_ms = 1e3 * times.transfer / steps,
         .exposed_ms = 1e3 * times.exposed / steps});
  }
  setting.latency_ms = 1e3 * profile->small() / steps;
  setting.workers = parts.options.workers;
  setting.bytes =
      train.layout().dtype() == DType::kF32
          ? mean_bytes(reduce, setting.workers, std::max<int64_t>(1, train.steps_applied()), profile->steps())
          : 2;
  const double leaves = static_cast<double>(parts.options.leaves) / static_cast<double>(setting.workers);
  if (train.layout().dtype() == DType::kF32 && !train.ownership().is_split())
    // Of powersgd nothing is known without trying it: most of its time is in products.
    for (const GradientCodec codec : {GradientCodec::kBf16, GradientCodec::kInt8, GradientCodec::kTopk}) {
      if (codec == reduce.codec) continue;
      const Coding cost = time_of(codec, reduce.topk, leaves);
      setting.codecs.push_back(
          {.name = codec == GradientCodec::kTopk ? fmt::format("topk {} %", 100 * reduce.topk)
                                                 : std::string(name_of(codec)),
           .bytes = bytes_of(codec, reduce.topk, setting.workers),
           .coding_ms = cost.coding_ms,
           .own_ms = cost.own_ms,
           .note = codec == GradientCodec::kTopk ? "another course of training, and memory" : "other bits"});
    }
  return account_of(buckets, step_ms, setting);
}

}  // namespace lockstep
