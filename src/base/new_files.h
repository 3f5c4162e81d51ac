// NewFiles: files that a command makes, written under temporary names and given their own when all of them
// are complete. A file that is there already is only replaced where that was asked for; on an error nothing
// stays.
#pragma once
#include <string>
#include <vector>

namespace lockstep {

class NewFiles {
 public:
  explicit NewFiles(bool overwrite) : overwrite_(overwrite) {}
  ~NewFiles();  // removes what was not finished
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  // The temporary name to write under, in the same folder. Throws UserError if the file is there already.
  std::string add(const std::string& path);
  // The one that was added first gets its name last. Throws UserError, also where a file has appeared
  // meanwhile.
  void finish();

 private:
  struct File {
    std::string temporary, path;
  };
  bool overwrite_;
  std::vector<File> files_;
};

}  // namespace lockstep
