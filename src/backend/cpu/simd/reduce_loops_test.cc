// Row and column reductions against double precision, the order of column sums, NaN and ties in max and
// argmax.
#include "backend/cpu/simd/reduce_loops.h"

#include "backend/cpu/simd/loops_testing.h"

namespace lockstep::cpu {
namespace {

class ReduceLoopsTest : public LoopsTest {};

TEST_P(ReduceLoopsTest, RowReductionsForEveryTail) {
  const ReduceLoops& loops = GetParam().reduce;
  for (int64_t cols = 1; cols <= 140; ++cols) {
    const auto a = random_floats(3 * cols, 1), b = random_floats(3 * cols, 2);
    std::vector<float> sums(3), squares(3), dots(3), highest(3);
    std::vector<int32_t> positions(3);
    loops.row_sum(sums.data(), a.data(), 3, cols);
    loops.row_sum_squares(squares.data(), a.data(), 3, cols);
    loops.row_dot(dots.data(), a.data(), b.data(), 3, cols);
    loops.row_max(highest.data(), a.data(), 3, cols);
    loops.row_argmax(positions.data(), a.data(), 3, cols);
    for (int64_t r = 0; r < 3; ++r) {
      double sum = 0, square = 0, dot = 0;
      int64_t best = 0;
      const float* row = &a[r * cols];
      for (int64_t i = 0; i < cols; ++i) {
        sum += row[i];
        square += static_cast<double>(row[i]) * row[i];
        dot += static_cast<double>(row[i]) * b[r * cols + i];
        if (row[i] > row[best]) best = i;
      }
      ASSERT_NEAR(sums[r], sum, 1e-6 * cols);
      ASSERT_NEAR(squares[r], square, 1e-6 * square);
      ASSERT_NEAR(dots[r], dot, 1e-6 * cols);
      ASSERT_EQ(highest[r], row[best]);
      ASSERT_EQ(positions[r], best);
    }
  }
}

TEST_P(ReduceLoopsTest, ArgmaxTakesTheFirstAndNanIsLargest) {
  const ReduceLoops& loops = GetParam().reduce;
  for (int64_t cols : {5, 40, 100}) {
    for (int64_t first = 0; first < cols; ++first) {
      std::vector<float> row(cols, -1.0f);
      for (int64_t i = first; i < cols; ++i) row[i] = 2.0f;
      int32_t position;
      float highest;
      loops.row_argmax(&position, row.data(), 1, cols);
      ASSERT_EQ(position, first);
      row[first] = NAN;
      loops.row_argmax(&position, row.data(), 1, cols);
      ASSERT_EQ(position, first);
      loops.row_max(&highest, row.data(), 1, cols);
      ASSERT_TRUE(std::isnan(highest)) << first << " of " << cols;
    }
    std::vector<float> masked(cols, -INFINITY);
    int32_t position;
    loops.row_argmax(&position, masked.data(), 1, cols);
    EXPECT_EQ(position, 0);
  }
}

TEST_P(ReduceLoopsTest, ColumnSumAddsInRowOrderHoweverItIsCut) {
  const ReduceLoops& loops = GetParam().reduce;
  const int64_t rows = 29, cols = 37;
  const auto x = random_floats(rows * cols, 5);
  std::vector<float> want(cols, 0.25f), whole = want, cut = want;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) want[c] += x[r * cols + c];
  loops.column_sum(whole.data(), x.data(), rows, cols);
  EXPECT_EQ(bits(whole), bits(want));
  for (int64_t r = 0; r < rows; r += 11)
    loops.column_sum(cut.data(), &x[r * cols], std::min<int64_t>(11, rows - r), cols);
  EXPECT_EQ(bits(cut), bits(want));
}

TEST_P(ReduceLoopsTest, Accumulate) {
  const auto x = random_floats(53, 1);
  auto acc = random_floats(53, 2), want = acc;
  for (size_t i = 0; i < 53; ++i) want[i] += x[i];
  GetParam().reduce.accumulate(acc.data(), x.data(), 53);
  EXPECT_EQ(bits(acc), bits(want));
}

LOCKSTEP_TEST_EVERY_ISA(ReduceLoopsTest);

}  // namespace
}  // namespace lockstep::cpu
