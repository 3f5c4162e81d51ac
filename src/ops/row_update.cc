#include "ops/row_update.h"

#include <cmath>

namespace lockstep {

std::vector<Type> infer_row_state(const InferContext& context) {
  if (context.type(0).dtype != DType::kF32 || context.shape(0).rank() != 2)
    context.fail("the table must be f32[V,C]");
  context.require_same_type(1, 0);
  context.require_same_type(2, 0);
  const Type last{DType::kI32, {context.shape(0)[0]}};
  if (context.type(3) != last)
    context.fail("last must be {}: one step per row of the table", to_string(last));
  return {context.type(0), context.type(1), context.type(2), context.type(3)};
}

std::vector<AttributeDef> adamw_attributes() {
  return {{"beta1", 0.9, "decay of the first moment"},
          {"beta2", 0.999, "decay of the second moment"},
          {"epsilon", 1e-8, "added to the denominator"},
          {"weight_decay", 0.01, "times lr, taken off the parameter"}};
}

std::vector<InplacePair> row_state_inplace() { return {{0, 0}, {1, 1}, {2, 2}, {3, 3}}; }

ReferenceAdamw::ReferenceAdamw(const Attributes& attributes)
    : beta1(attributes.number("beta1")),
      beta2(attributes.number("beta2")),
      epsilon(attributes.number("epsilon")),
      weight_decay(attributes.number("weight_decay")) {}

void ReferenceAdamw::element(const ReferenceContext& c, int64_t i, int64_t t, double lr,
                             double gradient) const {
  double& p = c.out(0)[i];
  double& m = c.out(1)[i];
  double& v = c.out(2)[i];
  m = beta1 * m + (1.0 - beta1) * gradient;
  v = beta2 * v + (1.0 - beta2) * gradient * gradient;
  const double correction1 = 1.0 - std::pow(beta1, static_cast<double>(t));
  const double correction2 = 1.0 - std::pow(beta2, static_cast<double>(t));
  p = p * (1.0 - lr * weight_decay) - lr / correction1 * m / (std::sqrt(v / correction2) + epsilon);
}

void copy_row_state(const ReferenceContext& context) {
  for (int i = 0; i < 4; ++i) context.out(i).data = context.in(i).data;
}

}  // namespace lockstep
