#include "base/file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/durable_file.h"
#include "base/error.h"

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
  const std::string temporary = path + ".partial";
  {
    errno = 0;
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) {
      const int error = errno;
      out.close();
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);  // half of it would be of no use to anybody
      throw_file_error("write", temporary, error == 0 ? EIO : error);
    }
  }
  std::error_code failure;
  std::filesystem::rename(temporary, path, failure);
  if (failure) throw UserError("cannot rename {} to {}: {}", temporary, path, failure.message());
}

}  // namespace lockstep
