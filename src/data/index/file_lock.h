// FileLock: one of several processes at a time; the others wait. Without rights to write the file nobody
// waits.
#pragma once
#include <string>

namespace lockstep {

class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

}  // namespace lockstep
