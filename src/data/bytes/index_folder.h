// IndexFolder: where that lies which is worked out of data files once and kept: indexes, access points of
// compressed files, constants of transforms, what columns look like, sets of records.
#pragma once
#include <string>
#include <utility>

namespace lockstep {

struct IndexFolder {
  std::string path = {};  // empty: .lockstep-index beside each file
  bool writes = true;     // false: what is there is used, and nothing is added

  IndexFolder() = default;
  IndexFolder(std::string folder, bool writable = true)  // NOLINT(google-explicit-constructor)
      : path(std::move(folder)), writes(writable) {}
  IndexFolder(const char* folder) : path(folder) {}  // NOLINT(google-explicit-constructor)

  // The folder for what is kept of this file.
  std::string of(const std::string& file) const;
  // Makes it, where it may be written. False: nothing is to be written there. Beside the data that also holds
  // for a link in place of the folder which neither this user nor root has made: it may lead anywhere.
  bool prepare(const std::string& file) const;
};

}  // namespace lockstep
