// What a trained model is asked: its evaluation graph without labels and losses, with the inputs and outputs
// under the names that users of such models expect.
//
//   tabular    dense f32[B,D], ids i32[B,N] (a column per table)      -> logits, probability f32[B]
//   encoder    input_ids, token_type_ids, attention_mask [B,T]        -> logits, probabilities, classes
//   gpt        input_ids [B,T]                                        -> logits f32[B,T,V]
//   resnet     images f32[B,S,S,3]                                    -> logits, probabilities, classes
#pragma once
#include <string_view>

#include "model/model.h"

namespace lockstep {

// Of a model that was built to evaluate. The outputs' values carry their names.
Graph forward_graph(const Model& model);
// Whole numbers of an input of it lie below this.
int64_t forward_input_bound(const Model& model, std::string_view name);

}  // namespace lockstep
