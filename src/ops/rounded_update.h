// Updates of parameters that are stored in bf16 and have no f32 copy: sgd, adam, adamw and lion with an
// operand rounding i64[2], (seed, position), before scale.
//
// p and g are bf16, the optimizer's own buffers f32 or bf16. All arithmetic is f32; what is stored in bf16 is
// rounded stochastically (ops/stochastic_rounding.h), so that an update far below the last place of its
// parameter, or of a moment that forgets one part in a thousand, counts on average. To nearest it would never
// count.
//
// `draws` says whose draws an element takes: triples (begin, key, first), where elements from begin on, up to
// the next triple's, are elements first, first + 1, ... of the tensor of that key. So the draws are a
// function of (seed, position, tensor, element), however the flat buffer is laid out and cut.
#pragma once
#include "ops/builder.h"

namespace lockstep {

struct DrawSegment {
  int64_t begin = 0;  // in the buffer
  int64_t key = 0;
  int64_t first = 0;  // in the tensor
};

// Draws are taken in whole blocks of this many.
inline constexpr int64_t kDrawBlock = 4;

AttributeDef draws_attribute();
std::vector<DrawSegment> draw_segments(const Attributes& attributes);

// The operand `rounding` of a node with these operands, or -1 where there is none.
int rounding_operand(const Graph& graph, std::span<const Value> inputs);
int rounding_operand(const InferContext& context);

// Results of an update with `states` buffers and that operand.
std::vector<Type> infer_rounded_update(const InferContext& context, int states);
// Rounds those results of a reference that are stored in bf16. Nothing without a rounding operand.
void round_results(const ReferenceContext& context);
// The update of the widened buffers, then the rounding.
std::vector<Value> decompose_rounded(Graph& graph, const Node& node, std::span<const Value> inputs);

// The key of a result's draws: parameters have their tensor's own (rounding_key, of 46 bits), each buffer of
// the optimizer another.
inline int64_t result_key(int64_t key, size_t result) {
  constexpr uint64_t kMix = 0x1e3779b97f4a, kBits = (uint64_t{1} << 46) - 1;
  return static_cast<int64_t>(static_cast<uint64_t>(key) ^ (result * kMix & kBits));
}

}  // namespace lockstep
