// What a table's label asks of a model: chosen by `model.task` in a job file, or found in the labels
// themselves (data/transform/label_encoding.h). The data folder encodes labels by it, the tabular family
// builds its last layer and its loss by it.
#pragma once
#include "base/choices.h"

namespace lockstep {

enum class LabelTask : uint8_t {
  kAuto,            // as the labels say; nothing that has seen them is left with it
  kBinary,          // yes or no: two different labels
  kClassification,  // one of many: texts, or few different whole numbers
  kRegression,      // a number
};
LOCKSTEP_CHOICE_NAMES(LabelTask, "auto", "binary", "classification", "regression")

}  // namespace lockstep
