// SavedWeights: what a checkpoint's evaluation reads, in the memory of a device: parameters (their moving
// average, where one was kept), frozen ones and running statistics.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "graph/graph.h"
#include "model/hf/source.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace lockstep {

class SavedWeights {
 public:
  // Those that are inputs of the evaluation graph; what the checkpoint leaves to the folder that its run
  // began with is read there. Throws UserError that lists all that is not there in the graph's type and
  // shape.
  SavedWeights(const CheckpointReader& checkpoint, const HfSource* base, const Graph& graph,
               Backend& backend);

  void* address(std::string_view name) const;
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::unordered_map<std::string, void*> addresses_;
  int64_t bytes_ = 0;
};

// One line for each tensor that the file does not have as it is wanted: "head.weight is f32[4,8] there and
// f32[2,8] here".
std::vector<std::string> misfits(const SafetensorsReader& file, const std::vector<TensorSpec>& wanted);

// Hands a tensor on piece by piece, through a piece of host memory.
using TensorSink = std::function<void(int64_t first_byte, std::span<const std::byte> piece)>;
void read_tensor(const SafetensorsReader& file, const TensorEntry& entry, const TensorSink& sink);

}  // namespace lockstep
