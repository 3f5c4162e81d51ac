// Writes an ONNX model as the protocol buffer that the format is, its weights streamed: inline, or in a file
// of their own beside it, as the format wants it beyond 2 GB (a protocol buffer can hold no more).
#pragma once
#include <functional>
#include <span>
#include <string>

#include "onnx/onnx_model.h"

namespace lockstep {

// Reads the bytes of a weight from `first` on, as the model keeps them, as many as `into` has.
using ReadWeight = std::function<void(const OnnxWeight& weight, int64_t first, std::span<std::byte> into)>;

struct OnnxFileOptions {
  std::string path;  // of the model
  // Of the weights: where the file lies, and what the model calls it. Empty: they are inline.
  std::string data_path = {}, data_name = {};
};

// Files of these names are replaced; they are on the disk when it returns.
void write_onnx(const OnnxModel& model, const OnnxFileOptions& options, const ReadWeight& read);

}  // namespace lockstep
