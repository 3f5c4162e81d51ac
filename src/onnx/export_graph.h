// From a model to ONNX: its forward graph in ops that ONNX has, with the batch left open.
#pragma once
#include <functional>

#include "model/model.h"
#include "onnx/onnx_model.h"

namespace lockstep {

// Gives the evaluation model for a number of samples in a batch.
using BuildEvaluation = std::function<Model(int64_t batch)>;

// Throws UserError that names an op that ONNX has no form of.
OnnxModel onnx_of(const BuildEvaluation& build);

// The graph in ops that have a form in ONNX: others are replaced by what they decompose into, until all have
// one. Nodes that no output needs are gone.
Graph onnx_ops_only(Graph graph);
// The extents of every value of a graph, which is that of `batch` samples, with those left open that differ
// in `other`, the same graph for `other_batch` samples.
std::vector<OnnxDims> open_extents(const Graph& graph, int64_t batch, const Graph& other,
                                   int64_t other_batch);

}  // namespace lockstep
