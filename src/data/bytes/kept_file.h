// What was worked out of the data once and is kept beside its indexes: constants of transforms, what columns
// look like, sets of records.
//
// A file begins with the hash of the rest. One that is damaged, or that a process of several which wrote it
// at the same time left half, is taken for none: it would otherwise change what a run trains on.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Nothing where there is no such file, or where it is damaged: the log says so, and it is to be made again.
std::optional<std::string> read_kept(const std::string& path);
// Where it cannot be written, nothing is kept; the log has said so of the index.
void write_kept(const std::string& path, std::string_view content);

// FileLock: one of several processes at a time; the others wait, or go on without it. Where there is no file
// that could be locked nobody waits. A link is no such file.
class FileLock {
 public:
  enum class Wait : uint8_t { kYes, kNo };
  explicit FileLock(const std::string& path, Wait wait = Wait::kYes);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // False: another process has it, and this one did not want to wait.
  bool held() const { return held_; }
  // True: no other process has it. False also where nobody can be kept from going on.
  bool excludes() const { return held_ && file_ >= 0; }

 private:
  int file_;
  bool held_ = true;
};

// ContentHash: a 128-bit hash of bytes (XXH3), to tell whether two files hold the same. Not against an
// adversary: identities and checkpoints use SHA-256 over it.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void update(std::string_view bytes);
  std::string finish() const;  // 32 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
