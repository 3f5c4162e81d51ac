// Whole-file reads and atomic writes with errors that name the path.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

// Throws UserError when the file cannot be read or is larger than limit bytes.
std::string read_file(const std::string& path, int64_t limit = int64_t{1} << 30);
// A reader sees the old bytes or the new, never a part; links are replaced, not followed (base/new_file.h).
void write_file(const std::string& path, std::string_view bytes);

}  // namespace lockstep
