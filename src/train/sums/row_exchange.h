// The lists of rows of tables between workers: everybody gets everybody's, and merges them in the order of
// the tree.
#pragma once
#include "comm/group.h"
#include "train/sums/gradient_slots.h"
#include "train/sums/sum_tree.h"

namespace lockstep {

// `own` slots hold this worker's partial sums; slot 0 ends with the lists of all. Where nothing is exchanged,
// the others' are taken to be empty.
void exchange_rows(Group& group, const SumTree& tree, GradientSlots& slots, int64_t own, bool exchanges);

}  // namespace lockstep
