// Sums over one axis group in an order that depends on shape alone: the one place that decides how a long sum
// is cut.
//
// A reduction is seen as [outer, reduced, inner]. With inner = 1 the rows are contiguous: each is cut in
// pieces of kSumPiece elements. Otherwise columns are summed: the reduced axis is cut in blocks of kSumBlock
// rows, added one after another. The partial sums are then summed by the same rule, until one is left.
// Whoever produces the terms on the fly (a fused expression that ends in a sum) hands them in as a TermSource
// and gets the same bits as from memory.
#pragma once
#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {

inline constexpr int64_t kSumPiece = 2048;
inline constexpr int64_t kSumBlock = 64;

struct SumShape {
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
  int64_t numel() const { return outer * reduced * inner; }
};

// Where the terms come from, as ranges of the row-major [outer, reduced, inner] index.
class TermSource {
 public:
  virtual ~TermSource() = default;
  // Terms [begin, begin + count), count <= largest(); valid until the same thread asks again.
  virtual const float* terms(int64_t begin, int64_t count, int thread) const = 0;
  // The longest range that may be asked for, at least kSumPiece. The result does not depend on it.
  virtual int64_t largest() const { return kSumPiece; }
};

// Terms that lie in memory.
class FloatTerms : public TermSource {
 public:
  explicit FloatTerms(const float* data) : data_(data) {}
  const float* terms(int64_t begin, int64_t, int) const override { return data_ + begin; }
  int64_t largest() const override { return int64_t{1} << 20; }

 private:
  const float* data_;
};

// The passes that sum a tensor over some axes: neighbouring axes are merged, and where reduced and kept axes
// alternate, the innermost group goes first. Never empty.
std::vector<SumShape> sum_passes(const Shape& shape, const std::vector<int>& axes);

// Floats of scratch that sum_terms needs for its partial sums.
int64_t sum_workspace(const SumShape& shape);

// out[outer, inner] = sum over the reduced axis. An empty axis sums to 0.
void sum_terms(const CpuContext& context, const SumShape& shape, const TermSource& source, float* out,
               float* workspace);

}  // namespace lockstep::cpu
