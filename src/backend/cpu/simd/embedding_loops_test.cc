// Sorted ids, gathers, bags and ordered row sums, bit for bit against the plain loops they stand for.
#include "backend/cpu/simd/embedding_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "backend/cpu/simd/available_loops.h"
#include "backend/cpu/sorted_ids.h"
#include "base/philox.h"

namespace lockstep::cpu {
namespace {

using Floats = std::vector<float>;

Floats normal_values(size_t n, uint64_t stream) {
  Floats x(n);
  Philox(31, stream).fill_normal(x, 0.0f, 1.0f);
  return x;
}

// Skewed, as tokens are: half of the ids fall in the first eighth of the table.
template <typename Id>
std::vector<Id> skewed_ids(size_t n, int64_t rows) {
  const Philox random(32, 1);
  std::vector<Id> ids(n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t range = random.bernoulli(2 * i, 0.5) ? rows : std::max<int64_t>(1, rows / 8);
    ids[i] = static_cast<Id>(random.bits(2 * i + 1) % range);
  }
  return ids;
}

std::vector<uint32_t> bits(const Floats& x) {
  std::vector<uint32_t> result;
  for (float value : x) result.push_back(std::bit_cast<uint32_t>(value));
  return result;
}

auto embeddings() { return available_loops(avx2::embedding_loops, avx512::embedding_loops); }

class Workspace {
 public:
  explicit Workspace(size_t n) : words_(sorted_ids_bytes(static_cast<int64_t>(n)) / 8 + 1) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }

 private:
  std::vector<uint64_t> words_;
};

template <typename Id>
void check_sorted(const std::vector<Id>& ids, const SortedIds& sorted, int64_t ignore) {
  ASSERT_EQ(sorted.bad_position, -1);
  ASSERT_EQ(sorted.starts.size(), sorted.rows.size() + 1);
  size_t kept = 0;
  for (Id id : ids) kept += id != ignore;
  ASSERT_EQ(sorted.positions.size(), kept);
  std::set<int32_t> seen;
  for (size_t u = 0; u < sorted.rows.size(); ++u) {
    if (u > 0) {
      ASSERT_LT(sorted.rows[u - 1], sorted.rows[u]);
    }
    ASSERT_LT(sorted.starts[u], sorted.starts[u + 1]);
    for (int32_t k = sorted.starts[u]; k < sorted.starts[u + 1]; ++k) {
      ASSERT_EQ(ids[sorted.positions[k]], sorted.rows[u]);
      if (k > sorted.starts[u]) {
        ASSERT_LT(sorted.positions[k - 1], sorted.positions[k]);
      }
      seen.insert(sorted.positions[k]);
    }
  }
  ASSERT_EQ(seen.size(), kept);
}

TEST(SortedIds, GroupsPositionsInOrder) {
  for (size_t n : {size_t{0}, size_t{1}, size_t{50}, size_t{3000}})
    for (int64_t rows :
         {int64_t{1}, int64_t{2}, int64_t{300}, int64_t{50257}, int64_t{5000000}, int64_t{2147483647}})
      for (int64_t ignore : {-1, 0}) {
        Workspace workspace(n);
        const auto narrow = skewed_ids<int32_t>(n, rows);
        check_sorted(narrow, sort_ids(std::span(narrow), rows, ignore, workspace.bytes()), ignore);
        const auto wide = skewed_ids<int64_t>(n, rows);
        check_sorted(wide, sort_ids(std::span(wide), rows, ignore, workspace.bytes()), ignore);
      }
}

TEST(SortedIds, NamesTheFirstBadPosition) {
  Workspace workspace(4);
  const std::vector<int32_t> ids = {0, -100, 9, 10};
  EXPECT_EQ(sort_ids(std::span(ids), 10, -1, workspace.bytes()).bad_position, 1);
  EXPECT_EQ(sort_ids(std::span(ids), 10, -100, workspace.bytes()).bad_position, 3);
  EXPECT_EQ(sort_ids(std::span(ids), 11, -100, workspace.bytes()).bad_position, -1);
}

TEST(EmbeddingLoops, GatherCopiesRowsAndStopsAtABadId) {
  const int64_t rows = 40;
  for (const auto& [isa, loops] : embeddings())
    for (int64_t cols : {1, 13, 64, 150}) {
      const Floats table = normal_values(rows * cols, 1);
      auto ids = skewed_ids<int64_t>(25, rows);
      Floats out(25 * cols), expected(25 * cols);
      for (int64_t i = 0; i < 25 * cols; ++i) expected[i] = table[ids[i / cols] * cols + i % cols];
      EXPECT_EQ(loops.gather_i64(table.data(), rows, cols, ids.data(), out.data(), 0, 9), -1);
      EXPECT_EQ(loops.gather_i64(table.data(), rows, cols, ids.data(), out.data(), 9, 25), -1);
      EXPECT_EQ(bits(out), bits(expected)) << isa;
      const std::vector<int32_t> narrow(ids.begin(), ids.end());
      Floats out_narrow(25 * cols);
      EXPECT_EQ(loops.gather_i32(table.data(), rows, cols, narrow.data(), out_narrow.data(), 0, 25), -1);
      EXPECT_EQ(bits(out_narrow), bits(expected)) << isa;
      ids[11] = rows;
      EXPECT_EQ(loops.gather_i64(table.data(), rows, cols, ids.data(), out.data(), 0, 25), 11);
      ids[11] = -1;
      EXPECT_EQ(loops.gather_i64(table.data(), rows, cols, ids.data(), out.data(), 0, 25), 11);
    }
}

// The gradient by the plainest loop: position after position, added to a row that starts at `start`.
Floats scatter_add(Floats start, const std::vector<int32_t>& ids, const Floats& terms, int64_t cols) {
  for (size_t i = 0; i < ids.size(); ++i)
    for (int64_t c = 0; c < cols; ++c) start[ids[i] * cols + c] += terms[i * cols + c];
  return start;
}

TEST(EmbeddingLoops, RowSumsEqualThePlainScatter) {
  const int64_t rows = 60, n = 500;
  const auto ids = skewed_ids<int32_t>(n, rows);
  Workspace workspace(n);
  const SortedIds sorted = sort_ids(std::span(ids), rows, -1, workspace.bytes());
  const int64_t units = static_cast<int64_t>(sorted.rows.size());
  for (const auto& [isa, loops] : embeddings())
    for (int64_t cols : {1, 31, 128, 150, 300}) {
      const Floats dy = normal_values(n * cols, 2), base = normal_values(rows * cols, 3);
      const RowTerms terms = {dy.data(), sorted.positions.data(), sorted.starts.data(), nullptr, nullptr};
      const Floats from_zero = scatter_add(Floats(rows * cols), ids, dy, cols);

      Floats dense(rows * cols), compact(units * cols), continued = base, added = base;
      // Ranges of rows and columns in any cut give the same bits.
      for (int64_t u = units; u > 0;) {
        const int64_t begin = std::max<int64_t>(0, u - 7);
        loops.sum_rows(terms, sorted.rows.data(), begin, u, cols, cols / 3, cols, RowSum::kStore,
                       dense.data());
        loops.sum_rows(terms, sorted.rows.data(), begin, u, cols, 0, cols / 3, RowSum::kStore, dense.data());
        u = begin;
      }
      loops.sum_rows(terms, nullptr, 0, units, cols, 0, cols, RowSum::kStore, compact.data());
      loops.sum_rows(terms, sorted.rows.data(), 0, units, cols, 0, cols, RowSum::kContinue, continued.data());
      loops.sum_rows(terms, sorted.rows.data(), 0, units, cols, 0, cols, RowSum::kAdd, added.data());

      ASSERT_EQ(bits(dense), bits(from_zero)) << isa << " cols " << cols;
      ASSERT_EQ(bits(continued), bits(scatter_add(base, ids, dy, cols))) << isa << " cols " << cols;
      for (int64_t u = 0; u < units; ++u)
        for (int64_t c = 0; c < cols; ++c) {
          const int64_t at = sorted.rows[u] * cols + c;
          ASSERT_EQ(compact[u * cols + c], from_zero[at]);
          ASSERT_EQ(added[at], base[at] + from_zero[at]);
        }
    }
}

TEST(EmbeddingLoops, BagsAndTheirGradient) {
  const int64_t rows = 50, cols = 45, n = 120;
  const std::vector<int32_t> offsets = {0, 4, 4, 40, 41, 120};
  const int64_t bags = 5;
  const auto ids = skewed_ids<int32_t>(n, rows);
  const std::vector<int64_t> wide_ids(ids.begin(), ids.end()), wide_offsets(offsets.begin(), offsets.end());
  const Floats table = normal_values(rows * cols, 4), dy = normal_values(bags * cols, 5);
  Workspace workspace(n);
  const SortedIds sorted = sort_ids(std::span(ids), rows, -1, workspace.bytes());
  std::vector<int32_t> bag_of(n);
  Floats weights(bags);
  expand_bags(std::span(offsets), bag_of, weights);

  for (const auto& [isa, loops] : embeddings())
    for (bool mean : {false, true}) {
      Floats expected(bags * cols), gradient(rows * cols);
      for (int64_t b = 0; b < bags; ++b) {
        const float scale = mean && offsets[b + 1] > offsets[b] ? 1.0f / (offsets[b + 1] - offsets[b]) : 1.0f;
        for (int64_t c = 0; c < cols; ++c) {
          float sum = 0.0f;
          for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
            sum += table[ids[i] * cols + c];
            gradient[ids[i] * cols + c] += dy[b * cols + c] * scale;
          }
          expected[b * cols + c] = sum * scale;
        }
      }
      Floats out(bags * cols), out_wide(bags * cols), table_gradient(rows * cols);
      EXPECT_EQ(
          loops.bag_i32(table.data(), rows, cols, ids.data(), offsets.data(), mean, out.data(), 0, bags), -1);
      EXPECT_EQ(loops.bag_i64(table.data(), rows, cols, wide_ids.data(), wide_offsets.data(), mean,
                              out_wide.data(), 0, bags),
                -1);
      EXPECT_EQ(bits(out), bits(expected)) << isa;
      EXPECT_EQ(bits(out_wide), bits(expected)) << isa;
      const RowTerms terms = {dy.data(), sorted.positions.data(), sorted.starts.data(), bag_of.data(),
                              mean ? weights.data() : nullptr};
      loops.sum_rows(terms, sorted.rows.data(), 0, static_cast<int64_t>(sorted.rows.size()), cols, 0, cols,
                     RowSum::kStore, table_gradient.data());
      EXPECT_EQ(bits(table_gradient), bits(gradient)) << isa;
    }
}

}  // namespace
}  // namespace lockstep::cpu
