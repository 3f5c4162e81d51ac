// Kernels at the sizes of real models: GPT-2 124M at B 64 T 1024, LLaMA 1.1B at B 8 T 2048, the 7B shape at B
// 4 T 2048.
#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/kernels/channel_norm.h"
#include "backend/cuda/kernels/column_sums.h"
#include "backend/cuda/kernels/losses.h"
#include "backend/cuda/kernels/optimizer.h"
#include "backend/cuda/kernels/pointwise.h"
#include "backend/cuda/kernels/random.h"
#include "backend/cuda/kernels/rope.h"
#include "backend/cuda/kernels/rounded_update.h"
#include "backend/cuda/kernels/row_norm.h"
#include "backend/cuda/kernels/softmax.h"
#include "backend/cuda/kernels/strided_copy.h"
#include "backend/cuda/kernels/tables.h"
#include "backend/cuda/kernels/tree_sum.h"
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;
using gpu_bench::random_buffer;

DeviceBuffer numbers(const std::vector<int64_t>& list) {
  DeviceBuffer buffer(static_cast<int64_t>(list.size()) * 8);
  require(cudaMemcpy(buffer.data(), list.data(), list.size() * 8, cudaMemcpyHostToDevice), "copy");
  return buffer;
}

void time_norms(Checks& c, int64_t rows, int64_t C) {
  const DType t = DType::kBF16;
  const double pass = 2.0 * static_cast<double>(rows * C);
  const DeviceBuffer x = random_buffer(t, rows * C, 1), r = random_buffer(t, rows * C, 2),
                     w = random_buffer(t, C, 3), b = random_buffer(t, C, 4);
  const DeviceBuffer sum(rows * C * 2), y(rows * C * 2), mean(rows * 4),
      rstd = random_buffer(DType::kF32, rows, 5), dw(C * 4), db(C * 4);
  const std::string shape = std::to_string(rows) + "x" + std::to_string(C) + " bf16";
  for (const bool centered : {true, false}) {
    const RowNormShape s{rows, C, t, false, centered};
    const std::string name = std::string(centered ? "layer_norm " : "rms_norm ") + shape;
    const auto forward = [&](bool residual) {
      row_norm(c.stream, s,
               {x.data(), residual ? r.data() : nullptr, w.data(), b.data(), sum.data(), y.data(),
                mean.as<float>(), rstd.as<float>(), 1e-5f});
    };
    c.time(name, 2 * pass, 0, [&] { forward(false); });
    c.time(name + " residual", 4 * pass, 0, [&] { forward(true); });
    DeviceBuffer workspace(row_norm_grad_workspace(s));
    const auto backward = [&](bool residual) {
      row_norm_grad(c.stream, s,
                    {y.data(), x.data(), w.data(), mean.as<float>(), rstd.as<float>(),
                     residual ? r.data() : nullptr, sum.data(), dw.data(), db.data()},
                    workspace.data());
    };
    c.time(name + " grad", 3 * pass, 0, [&] { backward(false); });
    c.time(name + " grad residual", 4 * pass, 0, [&] { backward(true); });
  }
}

void time_pointwise(Checks& c) {
  const int64_t n = int64_t{65536} * 3072;
  const DeviceBuffer x = random_buffer(DType::kBF16, n, 1), y = random_buffer(DType::kBF16, n, 2), z(n * 2),
                     row = random_buffer(DType::kBF16, 3072, 3);
  const double pass = 2.0 * static_cast<double>(n);
  c.time("add bf16", 3 * pass, 0, [&] {
    binary(c.stream, PointwiseFunction::add, DType::kBF16, x.data(), y.data(), Operand::kFull, 0, z.data(),
           n);
  });
  c.time("add a bias bf16", 2 * pass, 0, [&] {
    binary(c.stream, PointwiseFunction::add, DType::kBF16, x.data(), row.data(), Operand::kRow, 3072,
           z.data(), n);
  });
  c.time("gelu_tanh bf16", 2 * pass, 0,
         [&] { unary(c.stream, PointwiseFunction::gelu_tanh, DType::kBF16, x.data(), z.data(), n); });
  c.time("gelu_erf bf16", 2 * pass, 0,
         [&] { unary(c.stream, PointwiseFunction::gelu_erf, DType::kBF16, x.data(), z.data(), n); });
  c.time("gelu_tanh_grad bf16", 3 * pass, 0, [&] {
    binary(c.stream, PointwiseFunction::gelu_tanh_grad, DType::kBF16, x.data(), y.data(), Operand::kFull, 0,
           z.data(), n);
  });
  const DeviceBuffer f = random_buffer(DType::kF32, n / 2, 4);
  c.time("cast f32 to bf16", 6.0 * static_cast<double>(n / 2), 0,
         [&] { cast(c.stream, DType::kF32, f.data(), DType::kBF16, z.data(), n / 2); });
  c.time("cast bf16 to f32", 6.0 * static_cast<double>(n / 2), 0,
         [&] { cast(c.stream, DType::kBF16, z.data(), DType::kF32, f.data(), n / 2); });
  const int64_t rows = 16384, width = 5632;
  c.time("gated silu 16384x5632 bf16", 6.0 * static_cast<double>(rows * width), 0,
         [&] { gated(c.stream, Gate::kSilu, DType::kBF16, x.data(), z.data(), rows, width); });
  c.time("gated silu grad 16384x5632 bf16", 10.0 * static_cast<double>(rows * width), 0,
         [&] { gated_grad(c.stream, Gate::kSilu, DType::kBF16, x.data(), y.data(), z.data(), rows, width); });
  const DeviceBuffer rng = numbers({1, 2});
  c.time("dropout bf16", 2 * pass, 0,
         [&] { dropout(c.stream, DType::kBF16, x.data(), rng.as<int64_t>(), 3, 0.1, z.data(), n); });
  c.time("round_stochastic", 6.0 * static_cast<double>(n / 2), 0,
         [&] { round_stochastic(c.stream, f.as<float>(), rng.as<int64_t>(), 3, z.data(), n / 2); });
  const int64_t a[] = {3072, 65536}, from[] = {1, 3072}, to[] = {65536, 1};
  c.time("transpose 65536x3072 bf16", 2 * pass, 0,
         [&] { strided_copy(c.stream, 2, a, x.data(), from, z.data(), to); });
  const ReducedShape bias{1, 65536, 3072}, whole{1, n, 1};
  DeviceBuffer workspace(std::max(sum_axis_workspace(bias), sum_axis_workspace(whole)));
  c.time("bias gradient 65536x3072 bf16", pass, 0, [&] {
    sum_axis(c.stream, bias, DType::kBF16, x.data(), 1.0f, DType::kF32, z.data(), workspace.data());
  });
  c.time("sum of everything bf16", pass, 0, [&] {
    sum_axis(c.stream, whole, DType::kBF16, x.data(), 1.0f, DType::kF32, z.data(), workspace.data());
  });
  const ReducedShape scores{65536, 1024, 1};
  c.time("softmax 65536x1024 bf16", 4.0 * 65536 * 1024, 0,
         [&] { softmax(c.stream, scores, DType::kBF16, false, x.data(), z.data()); });
  const DeviceBuffer cosine = random_buffer(DType::kF32, 2048 * 64, 5);
  const RopeShape rope_shape{8192, 2048, 96, 64, 128, 128, false, false, DType::kBF16};
  c.time("rope in a packed qkv, 7B shape", 4.0 * 8192 * 64 * 128, 0, [&] {
    rope(c.stream, rope_shape, x.data(), nullptr, cosine.as<float>(), cosine.as<float>(), x.data());
  });
  for (const int sources : {2, 4, 8}) {
    TreeSources list{{}, sources};
    const int64_t part = n / 16;
    for (int s = 0; s < sources; ++s) list.address[s] = f.as<float>() + s * part;
    c.time("tree_sum f32 of " + std::to_string(sources), 4.0 * static_cast<double>(part) * (sources + 1), 0,
           [&] { tree_sum(c.stream, DType::kF32, list, false, z.data(), part); });
  }
}

void time_losses(Checks& c) {
  for (const int64_t V : {50304, 50257}) {
    const int64_t rows = 16384;
    const DeviceBuffer x = random_buffer(DType::kBF16, rows * V, 1), labels(rows * 4), lse(rows * 4),
                       small(1024);
    require(cudaMemset(labels.data(), 0, static_cast<size_t>(rows * 4)), "memset");
    require(cudaMemset(small.data(), 0, 1024), "memset");
    const CrossEntropyShape s{rows, V, DType::kBF16, -100, 0.0f};
    DeviceBuffer workspace(cross_entropy_workspace(s));
    auto* loss = small.as<float>();
    auto* count = small.as<int64_t>() + 8;
    auto* bad = reinterpret_cast<BadLabel*>(small.as<int64_t>() + 16);
    const double pass = 2.0 * static_cast<double>(rows * V);
    const std::string name = "16384x" + std::to_string(V) + " bf16";
    c.time("cross_entropy " + name, pass, 0, [&] {
      cross_entropy(c.stream, s, x.data(), labels.as<int32_t>(), loss, count, lse.as<float>(), bad,
                    workspace.data());
    });
    c.time("cross_entropy in place " + name, 2 * pass, 0, [&] {
      cross_entropy_in_place(c.stream, s, loss, x.data(), labels.as<int32_t>(), loss + 1, count,
                             lse.as<float>(), bad, workspace.data());
    });
  }
}

void time_tables(Checks& c) {
  const int64_t n = 65536, rows = 50304, C = 768;
  Draw draw(1);
  std::vector<int32_t> ids;
  // As words are: a few ids make up most of the text.
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(static_cast<int32_t>(std::pow(static_cast<double>(rows), draw.uniform())) - 1);
  DeviceBuffer list(n * 4), bad(8);
  require(cudaMemcpy(list.data(), ids.data(), ids.size() * 4, cudaMemcpyHostToDevice), "copy");
  require(cudaMemset(bad.data(), 0xff, 8), "memset");
  const Ids id_list{list.data(), false, n, rows, -1};
  const DeviceBuffer table = random_buffer(DType::kBF16, rows * C, 2), out(n * C * 2),
                     dy = random_buffer(DType::kBF16, n * C, 3),
                     dtable = random_buffer(DType::kBF16, rows * C, 4);
  c.time("embedding 65536 of 50304x768 bf16", 4.0 * static_cast<double>(n * C), 0,
         [&] { gather_rows(c.stream, id_list, 2, 1, C, table.data(), out.data(), bad.as<BadId>()); });
  const RowSums how{.dtype = DType::kBF16, .columns = C, .mode = RowMode::kAdd};
  DeviceBuffer sort(sort_ids_workspace(id_list)), partials(row_sums_workspace(id_list, how));
  c.time("sort_ids 65536", 0, 0, [&] { sort_ids(c.stream, id_list, sort.data(), bad.as<BadId>()); });
  const SortedIds sorted = sort_ids(c.stream, id_list, sort.data(), bad.as<BadId>());
  c.time("embedding_grad 65536 into 50304x768 bf16, sorted", 2.0 * static_cast<double>(n * C), 0,
         [&] { row_sums(c.stream, id_list, sorted, how, dy.data(), dtable.data(), partials.data()); });
}

// Parameters in bf16, of 200 tensors.
void time_rounded(Checks& c, const StepScalars& s, NoDecay no_decay, int64_t n) {
  const DeviceBuffer p = random_buffer(DType::kBF16, n, 1), g = random_buffer(DType::kBF16, n, 2),
                     m = random_buffer(DType::kBF16, 2 * n, 3), v(n * 4);
  require(cudaMemset(v.data(), 0, static_cast<size_t>(n * 4)), "memset");
  std::vector<DrawRange> ranges;
  for (int64_t i = 0; i < 200; ++i)
    ranges.push_back({n / 200 / 1024 * 1024 * i, 0, {3 * i, 3 * i + 1, 3 * i + 2}});
  DeviceBuffer list(static_cast<int64_t>(ranges.size() * sizeof(DrawRange)));
  require(cudaMemcpy(list.data(), ranges.data(), ranges.size() * sizeof(DrawRange), cudaMemcpyHostToDevice),
          "copy");
  const DeviceBuffer rounding = numbers({42, 7});
  const Draws draws{list.as<DrawRange>(), static_cast<int>(ranges.size()), rounding.as<int64_t>()};
  const auto updated = [](const DeviceBuffer& buffer) { return Updated{buffer.data(), buffer.data()}; };
  const auto bytes = static_cast<double>(n);
  // Numbers of bf16 are numbers as f32 too, and not the other way round.
  for (const DType moments : {DType::kBF16, DType::kF32}) {
    const RoundedState state{updated(p), g.data(), updated(m), updated(v), moments, n};
    const double moment = 2.0 * static_cast<double>(lockstep::size_of(moments));
    const std::string with =
        std::string(" 124M bf16, ") + std::string(lockstep::name_of(moments)) + " moments";
    c.time("adamw" + with, (6 + 2 * moment) * bytes, 0,
           [&] { rounded_adam(c.stream, state, s, no_decay, draws, {}, true); });
    c.time("lion" + with, (6 + moment) * bytes, 0,
           [&] { rounded_lion(c.stream, state, s, no_decay, draws, {}); });
    c.time("sgd momentum" + with, (6 + moment) * bytes, 0,
           [&] { rounded_sgd(c.stream, state, s, no_decay, draws, 0.9f, false, 0.1f); });
  }
}

void time_optimizers(Checks& c) {
  const int64_t n = 124'475'904;
  const DeviceBuffer p = random_buffer(DType::kF32, n, 1), g = random_buffer(DType::kF32, n, 2),
                     m = random_buffer(DType::kF32, n, 3), v(n * 4), p16(n * 2);
  require(cudaMemset(v.data(), 0, static_cast<size_t>(n * 4)), "memset");
  DeviceBuffer scalars(256);
  const float two[] = {1.0f, 1e-4f};
  const int64_t step = 100;
  require(cudaMemcpy(scalars.data(), two, 8, cudaMemcpyHostToDevice), "copy");
  require(cudaMemcpy(scalars.as<char>() + 8, &step, 8, cudaMemcpyHostToDevice), "copy");
  const StepScalars s{scalars.as<float>(), scalars.as<float>() + 1,
                      reinterpret_cast<const int64_t*>(scalars.as<char>() + 8)};
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < 50; ++i) edges.push_back(i * 2'400'000 + (i % 2) * 1024);
  const DeviceBuffer edge_list = numbers(edges);
  const NoDecay no_decay{edge_list.as<int64_t>(), 50};
  const FlatState state{p.as<float>(), g.as<float>(), m.as<float>(), v.as<float>(), nullptr, n};
  FlatState with_copy = state;
  with_copy.p_bf16 = p16.data();
  const auto bytes = static_cast<double>(n);
  c.time("adamw 124M", 28 * bytes, 0, [&] { adam(c.stream, state, s, no_decay, {}, true); });
  c.time("adamw 124M with bf16 copy", 30 * bytes, 0,
         [&] { adam(c.stream, with_copy, s, no_decay, {}, true); });
  c.time("sgd momentum 124M", 20 * bytes, 0, [&] { sgd(c.stream, state, s, no_decay, 0.9f, false, 0.1f); });
  c.time("lion 124M", 20 * bytes, 0, [&] { lion(c.stream, state, s, no_decay, {}); });
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const NormBuffer buffer{g.data(), dtype, n};
    DeviceBuffer workspace(global_norm_workspace({&buffer, 1})), norm(4);
    c.time(dtype == DType::kF32 ? "global_norm 124M" : "global_norm 124M bf16",
           static_cast<double>(lockstep::size_of(dtype)) * bytes, 0, [&] {
             global_norm(c.stream, {&buffer, 1}, norm.as<float>(), workspace.data());
           });
  }
  time_rounded(c, s, no_decay, n);
}

void time_images(Checks& c) {
  const int64_t rows = int64_t{256} * 56 * 56, C = 64;
  const DeviceBuffer x = random_buffer(DType::kBF16, rows * C, 1),
                     dy = random_buffer(DType::kBF16, rows * C, 2), y(rows * C * 2),
                     w = random_buffer(DType::kF32, C * 8, 3);
  const ChannelNormShape s{rows, C, DType::kBF16, true, true, true};
  DeviceBuffer workspace(channel_norm_workspace(s));
  auto* f = w.as<float>();
  const double pass = 2.0 * static_cast<double>(rows * C);
  c.time("batch_norm relu 256x56x56x64 bf16", 3 * pass, 0, [&] {
    channel_norm(c.stream, s,
                 {x.data(), f, f + C, nullptr, nullptr, y.data(), f + 2 * C, f + 3 * C, f + 4 * C, 1e-5},
                 workspace.data());
  });
  c.time("batch_norm relu grad 256x56x56x64 bf16", 5 * pass, 0, [&] {
    channel_norm_grad(c.stream, s,
                      {dy.data(), x.data(), f, f + C, f + 2 * C, f + 3 * C, y.data(), f + 5 * C, f + 6 * C},
                      workspace.data());
  });
}

}  // namespace

void time_kernels(Checks& c) {
  time_norms(c, 65536, 768);
  time_norms(c, 16384, 2048);
  time_norms(c, 16384, 4096);
  time_pointwise(c);
  time_losses(c);
  time_tables(c);
  time_optimizers(c);
  time_images(c);
}

}  // namespace kernel_check
