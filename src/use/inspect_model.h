// lockstep inspect: what a Hugging Face folder, an adapter or a file of tensors holds, whether this program
// can train it, and the memory that takes. Reads headers, no weights.
#pragma once
#include <cstdint>
#include <string>

namespace lockstep {

struct FolderInspection {
  std::string path;
  int64_t workers = 8;  // among which ZeRO divides state
};

// Lines for people. Throws UserError where there is nothing to look at; a model that cannot be trained is no
// error: the text says why.
std::string inspect_model(const FolderInspection& options);

}  // namespace lockstep
