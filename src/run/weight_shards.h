// Files of weights written side by side: all processors make the values, and every file has its own writer.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "safetensors/header.h"

namespace lockstep {

struct WeightShard {
  std::string name;
  std::vector<TensorSpec> tensors;  // as they are written
};

// Elements [first, first + count) as they are written. Several threads ask at once.
using FillPart = std::function<void(int64_t first, int64_t count, std::span<std::byte> into)>;
using FillFloats = std::function<void(int64_t first, std::span<float> into)>;
// What makes f32 values, rounded once to nearest.
FillPart as_floats(DType dtype, FillFloats fill);

// `open` is asked for one tensor of each file at a time. Files hold parts of a few MiB, whatever their size.
void write_shards(const std::string& folder, const std::vector<WeightShard>& shards,
                  const std::function<FillPart(const TensorSpec& tensor)>& open);

}  // namespace lockstep
