// A folder of its own for a test, removed afterwards.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file.h"

namespace lockstep {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name = "") const { return (path_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    write_file(path(name), text);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep
