// What was worked out of the data once and is kept beside its indexes: constants of transforms, what columns
// look like, sets of records.
//
// A file begins with the hash of the rest. One that is damaged, or that a process of several which wrote it
// at the same time left half, is taken for none: it would otherwise change what a run trains on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Nothing where there is no such file, or where it is damaged: the log says so, and it is to be made again.
std::optional<std::string> read_kept(const std::string& path);
// Where it cannot be written, nothing is kept; the log has said so of the index.
void write_kept(const std::string& path, std::string_view content);

}  // namespace lockstep
