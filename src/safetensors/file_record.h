// What is known of a file of tensors once it is written: its size and SHA-256, and where each tensor lies
// with a checksum of its own, so that damage can be named even where the file's header is damaged.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct TensorRecord {
  std::string name;
  int64_t begin = 0;  // bytes from the start of the file
  int64_t end = 0;
  uint64_t checksum = 0;
};

struct FileRecord {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;
  std::vector<TensorRecord> tensors;
};

}  // namespace lockstep
