// PredictionFile: where predictions go: a file that appears under its name when it is complete, or standard
// output.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/table_writer.h"

namespace lockstep {

// "-" in place of a path.
inline constexpr const char* kStandardOutput = "-";

class PredictionFile {
 public:
  // Throws UserError if it cannot be written, and for a path that is one of `inputs`.
  PredictionFile(std::string path, const std::vector<std::string>& inputs);

  void write(std::string_view bytes);
  void finish();
  int64_t size() const { return size_; }

 private:
  std::string path_;
  std::unique_ptr<PartialFile> file_;  // null: a descriptor, where bytes go at once
  int descriptor_ = 1;
  int64_t size_ = 0;
};

// The format that a path's ending names, or `asked` where that is not empty; of standard output CSV. Throws
// UserError that names those that can be written.
std::string format_to_write(const std::string& path, const std::string& asked);

}  // namespace lockstep
