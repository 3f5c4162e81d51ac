// What a program must know to use an exported model, as JSON: what it was made by, its inputs and outputs,
// and how records become the former.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "onnx/onnx_model.h"
#include "prepare/trained_model.h"

namespace lockstep {

nlohmann::ordered_json describe_export(const TrainedModel& model, const OnnxModel& onnx);

// The lines of encoding.txt as {"dense": [..], "ids": [..], "label": .., "transforms": [..]}, each column
// with the place in the input and its constants.
nlohmann::ordered_json encoding_json(std::string_view text);

// "float32[batch,13]".
std::string port_text(const OnnxPort& port);

}  // namespace lockstep
