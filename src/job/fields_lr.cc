// The learning rate: its base, how it follows the batch, and its course over the run.
#include "job/fields.h"

namespace lockstep {

std::vector<Field> lr_fields() {
  return {
      LOCKSTEP_FIELD(train.lr.base, "the learning rate found good at base_batch")
          .required()
          .at_least(0)
          .example("1e-3"),
      LOCKSTEP_FIELD(train.lr.base_batch, "the batch that base was found with")
          .at_least(1)
          .at_most(1e9)
          .or_else("global_batch")
          .example("32"),
      LOCKSTEP_FIELD(train.lr.scaling,
                     "how the peak follows global_batch / base_batch: not at all, in proportion (SGD), or by "
                     "its square root (Adam)")
          .defaults_to("none"),
      LOCKSTEP_FIELD(train.lr.warmup, "rises from 0 to the peak over this")
          .defaults_to("0")
          .at_least(0)
          .example("5%"),
      LOCKSTEP_FIELD(train.lr.decay,
                     "the course after the warm-up; wsd stays at the peak and falls at the end")
          .defaults_to("constant"),
      LOCKSTEP_FIELD(train.lr.decay_steps, "how long the fall takes")
          .above(0)
          .or_else("wsd: the last 10%; inverse_sqrt: has none; others: from the warm-up to the end")
          .example("10%"),
      LOCKSTEP_FIELD(train.lr.min, "where the fall ends").defaults_to("0").at_least(0),
      LOCKSTEP_FIELD(train.lr.power, "of the polynomial, and of the fall of wsd")
          .defaults_to("1")
          .above(0)
          .at_most(100),
  };
}

}  // namespace lockstep
