// Writes a safetensors file whose tensors come one after another, so that no more than a piece of one needs
// to be in memory: the names and shapes come first, then the bytes in the order of tensors().
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/durable_file.h"
#include "safetensors/file_record.h"
#include "safetensors/fold.h"
#include "safetensors/header.h"

namespace lockstep {

class SafetensorsWriter {
 public:
  // The file is <folder>/<name>.
  SafetensorsWriter(const std::string& folder, std::string name, std::vector<TensorSpec> tensors,
                    SafetensorsMetadata metadata);

  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  // The next bytes of the file's data, in pieces of any size that do not cross from one tensor into the next.
  void append(std::span<const std::byte> bytes);
  // Makes the file durable. InternalError if bytes are missing.
  FileRecord finish();

 private:
  void close_full_tensors();

  SafetensorsHeader header_;
  DurableFile file_;
  FileRecord record_;
  Fold fold_;  // of the tensor that is being written
};

}  // namespace lockstep
