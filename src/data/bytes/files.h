// Which files a pattern or a folder means, in an order that no locale or file system changes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The paths that match a shell pattern (*, ?, [...]; a plain path matches itself), sorted by their bytes.
// Throws UserError when there is none.
std::vector<std::string> match_files(const std::string& pattern);

// The regular files under a path: itself if it is a file, otherwise all in the folder and below, sorted by
// their bytes. Hidden names and symbolic links below the folder are left out, so that nothing is read twice.
std::vector<std::string> files_under(const std::string& path);

// All files that paths, folders and patterns mean, each once, sorted by their bytes. Of the files in folders
// only those count whose names end in `suffix`.
std::vector<std::string> expand_files(const std::vector<std::string>& patterns, std::string_view suffix = "");

}  // namespace lockstep
