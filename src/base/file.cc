#include "base/file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/new_file.h"

namespace lockstep {

std::string read_file(const std::string& path, int64_t limit) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  if (failure) throw UserError("cannot read {}: {}", path, failure.message());
  if (static_cast<int64_t>(size) > limit)
    throw UserError("{} has {} bytes; at most {} are read from such a file", path, size, limit);
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw UserError("cannot read {}", path);
  return std::move(text).str();
}

void write_file(const std::string& path, std::string_view bytes) {
  NewFile file(path);
  file.write(bytes);
  file.finish();
}

}  // namespace lockstep
