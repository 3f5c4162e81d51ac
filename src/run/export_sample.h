// Drawn inputs of a trained model with the answers that this program gives to them: whoever runs the exported
// model elsewhere can see that it gives the same.
#pragma once
#include <string>

#include "prepare/trained_model.h"

namespace lockstep {

// A safetensors file with one tensor per input and output of forward_graph, under its name; whole numbers are
// int64, as an ONNX model takes them. Computed in fp32 on the CPU.
void write_sample(const TrainedModel& model, int64_t rows, const std::string& folder,
                  const std::string& file);

}  // namespace lockstep
