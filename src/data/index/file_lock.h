// FileLock: one of several processes at a time; the others wait, or go on without it. Without rights to write
// the file nobody waits.
#pragma once
#include <cstdint>
#include <string>

namespace lockstep {

class FileLock {
 public:
  enum class Wait : uint8_t { kYes, kNo };
  explicit FileLock(const std::string& path, Wait wait = Wait::kYes);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // False: another process has it, and this one did not want to wait.
  bool held() const { return held_; }

 private:
  int file_;
  bool held_ = true;
};

}  // namespace lockstep
