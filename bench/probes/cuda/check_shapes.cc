#include "backend/cuda/kernels/column_sums.h"
#include "backend/cuda/kernels/strided_copy.h"
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;
using List = std::vector<int64_t>;

// Copies by index arithmetic on the host.
void check_copy(Checks& c, const std::string& name, DType dtype, const List& extents, const List& from,
                int64_t source, const List& to, int64_t target) {
  std::vector<double> host(static_cast<size_t>(source));
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<double>(i % 251) - 100;
  const Tensor x = values(dtype, host);
  Tensor y = tensor(dtype, target);
  std::vector<double> want(static_cast<size_t>(target), 0.0);
  int64_t count = 1;
  for (const int64_t e : extents) count *= e;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, a = 0, b = 0;
    for (size_t axis = extents.size(); axis-- > 0;) {
      a += rest % extents[axis] * from[axis];
      b += rest % extents[axis] * to[axis];
      rest /= extents[axis];
    }
    want[static_cast<size_t>(b)] = x[a];
  }
  const auto zero = [&] { require(cudaMemset(y.data(), 0, static_cast<size_t>(y.device.bytes())), "zero"); };
  c.check(
      "copy " + name + " " + std::string(lockstep::name_of(dtype)), {{&y, &want, "y"}}, 0,
      [&] { strided_copy(c.stream, lockstep::size_of(dtype), extents, x.data(), from, y.data(), to); }, zero);
}

void check_reductions(Checks& c, DType dtype, const ReducedShape& s) {
  const std::string shape = std::to_string(s.outer) + "x" + std::to_string(s.reduced) + "x" +
                            std::to_string(s.inner) + " " + std::string(lockstep::name_of(dtype));
  Tensor x = random_tensor(dtype, s.outer * s.reduced * s.inner, 31, -1, 2);
  const int64_t results = s.outer * s.inner;
  std::vector<double> sum(static_cast<size_t>(results)), largest(sum), where(sum), dwant(x.host.size());
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      const auto to = static_cast<size_t>(o * s.inner + i);
      int64_t best = 0;
      const auto at = [&](int64_t r) { return (o * s.reduced + r) * s.inner + i; };
      for (int64_t r = 0; r < s.reduced; ++r) {
        sum[to] += x[at(r)];
        if (x[at(r)] > x[at(best)]) best = r;
      }
      largest[to] = x[at(best)];
      where[to] = static_cast<double>(best);
    }
  Tensor out = tensor(dtype, results), f32 = tensor(DType::kF32, results), at = tensor(DType::kI32, results);
  const Tensor dy = random_tensor(dtype, results, 32);
  Tensor dx = tensor(dtype, x.count());
  for (int64_t to = 0; to < results; ++to)
    dwant[static_cast<size_t>(
        (to / s.inner * s.reduced + static_cast<int64_t>(where[static_cast<size_t>(to)])) * s.inner +
        to % s.inner)] = dy[to];
  DeviceBuffer workspace(sum_axis_workspace(s));
  // What does not fit the type is infinite on both sides.
  std::vector<double> stored = sum;
  for (double& s_of : stored) s_of = lockstep::round_to(dtype, s_of);
  c.check("sum " + shape, {{&out, &stored, "sum"}}, bound_of(dtype),
          [&] { sum_axis(c.stream, s, dtype, x.data(), 1.0f, dtype, out.data(), workspace.data()); });
  std::vector<double> mean = sum;
  for (double& m : mean) m /= static_cast<double>(s.reduced);
  c.check("mean to f32 " + shape, {{&f32, &mean, "mean"}}, 1e-5, [&] {
    sum_axis(c.stream, s, dtype, x.data(), 1.0f / static_cast<float>(s.reduced), DType::kF32, f32.data(),
             workspace.data());
  });
  c.check("max " + shape, {{&out, &largest, "max"}, {&at, &where, "argmax"}}, 0,
          [&] { max_axis(c.stream, s, dtype, x.data(), out.data(), at.device.as<int32_t>()); });
  c.check("max_grad " + shape, {{&dx, &dwant, "dx"}}, 0,
          [&] { max_axis_grad(c.stream, s, dtype, x.data(), dy.data(), dx.data()); });
}

}  // namespace

void check_shapes(Checks& c) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI64, DType::kU8}) {
    check_copy(c, "transpose 2d", dtype, {70, 50}, {1, 70}, 3500, {50, 1}, 3500);
    check_copy(c, "transpose 0213", dtype, {3, 5, 7, 16}, {7 * 5 * 16, 16, 5 * 16, 1}, 3 * 5 * 7 * 16,
               {5 * 7 * 16, 7 * 16, 16, 1}, 3 * 5 * 7 * 16);
    check_copy(c, "transpose 0132", dtype, {4, 40, 33}, {1320, 1, 40}, 5280, {1320, 33, 1}, 5280);
    check_copy(c, "broadcast row", dtype, {19, 48}, {0, 1}, 48, {48, 1}, 19 * 48);
    check_copy(c, "broadcast column", dtype, {19, 48}, {1, 0}, 19, {48, 1}, 19 * 48);
    check_copy(c, "broadcast scalar", dtype, {1000}, {0}, 1, {1}, 1000);
    check_copy(c, "slice", dtype, {8, 20}, {64, 2}, 8 * 64, {20, 1}, 160);
    check_copy(c, "into a part", dtype, {8, 16}, {16, 1}, 128, {48, 1}, 8 * 48);
  }
  for (const DType dtype : kFloating)
    for (const ReducedShape& s :
         {ReducedShape{37, 300, 1}, ReducedShape{3, 20011, 1}, ReducedShape{1, 1200000, 1},
          ReducedShape{1, 3000, 96}, ReducedShape{4, 77, 33}, ReducedShape{2, 5, 1000}})
      check_reductions(c, dtype, s);
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kI64}) {
    Tensor out = tensor(dtype, 5 * 7 * 3);
    std::vector<double> want;
    for (int64_t i = 0; i < 105; ++i) want.push_back(static_cast<double>(i / 3 % 7));
    c.check("iota " + std::string(lockstep::name_of(dtype)), {{&out, &want, "y"}}, 0,
            [&] { iota(c.stream, dtype, 3, 7, out.data(), 105); });
  }
  const int64_t matrices = 5, n = 9, pairs = n * (n - 1) / 2;
  const Tensor square = random_tensor(DType::kF32, matrices * n * n, 33),
               packed = random_tensor(DType::kF32, matrices * pairs, 34);
  Tensor y = tensor(DType::kF32, matrices * pairs), dx = tensor(DType::kF32, matrices * n * n);
  std::vector<double> want(y.host.size()), dwant(dx.host.size());
  for (int64_t m = 0; m < matrices; ++m)
    for (int64_t r = 1; r < n; ++r)
      for (int64_t k = 0; k < r; ++k) {
        const auto s = static_cast<size_t>(m * n * n + r * n + k),
                   p = static_cast<size_t>(m * pairs + r * (r - 1) / 2 + k);
        want[p] = square.host[s];
        dwant[s] = packed.host[p];
      }
  c.check("lower_triangle", {{&y, &want, "y"}}, 0,
          [&] { lower_triangle(c.stream, 4, matrices, n, square.data(), y.data()); });
  c.check("lower_triangle_grad", {{&dx, &dwant, "dx"}}, 0,
          [&] { lower_triangle_grad(c.stream, 4, matrices, n, packed.data(), dx.data()); });
  Tensor filled = tensor(DType::kI64, 77);
  const std::vector<double> sevens(77, 7.0);
  c.check("fill", {{&filled, &sevens, "y"}}, 0, [&] { fill(c.stream, 8, 7, filled.data(), 77); });
}

}  // namespace kernel_check
