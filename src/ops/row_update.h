// What the updates of single rows of a table share: p, m and v f32[V,C] and `last` i32[V], the step after
// which each row's p, m and v are up to date. All four are updated in place.
//
// A table of which a step touches few rows need not be walked whole every step: the rows a step reads are
// first caught up (adamw_catch_up replays the steps they missed, whose gradient was zero), then take the step
// itself (adamw_rows). Every row ends with the very bits that `adamw` over the whole table gives.
#pragma once
#include "graph/op_def.h"

namespace lockstep {

// Checks operands 0 to 3 and returns their types, which are the results' types.
std::vector<Type> infer_row_state(const InferContext& context);

// beta1, beta2, epsilon and weight_decay.
std::vector<AttributeDef> adamw_attributes();
std::vector<InplacePair> row_state_inplace();

// One step of AdamW in fp64 on row `row` of the results, which hold the state; gradient(column) is already
// scaled.
struct ReferenceAdamw {
  double beta1, beta2, epsilon, weight_decay;
  explicit ReferenceAdamw(const Attributes& attributes);
  template <typename Gradient>
  void step(const ReferenceContext& c, int64_t row, int64_t t, double lr, const Gradient& gradient) const {
    const int64_t columns = c.in(0).type.shape[1];
    for (int64_t k = 0; k < columns; ++k) element(c, row * columns + k, t, lr, gradient(k));
  }

 private:
  void element(const ReferenceContext& c, int64_t i, int64_t t, double lr, double gradient) const;
};

// The results start as the operands.
void copy_row_state(const ReferenceContext& context);

}  // namespace lockstep
