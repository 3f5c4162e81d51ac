// DiskCache: what is dear to make and the same in every process (compiled kernels, plans of libraries, timed
// choices), kept in a folder: $LOCKSTEP_CACHE, else $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep.
//
// An entry is named by the hash of everything that makes it, so that another version of a library or another
// device finds nothing. One that was cut short or cannot be read is made again; a disk that takes nothing is
// no error.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::cuda {

class DiskCache {
 public:
  DiskCache();  // in the folder that the environment names; nothing is kept where it names none
  explicit DiskCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }  // "" where nothing is kept
  // "" where there is none. `kind` is the ending of the file's name.
  std::string read(std::string_view key, std::string_view kind) const;
  void write(std::string_view key, std::string_view kind, std::string_view data) const;

 private:
  std::filesystem::path path_of(std::string_view key, std::string_view kind) const;

  std::filesystem::path folder_;
};

}  // namespace lockstep::cuda
