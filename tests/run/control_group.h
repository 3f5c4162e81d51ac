// A control group of the kernel with a limit on memory, or on processor time, below the one of this process,
// for as long as the object lives. Needs rights that not every user has: why_not() says what is missing.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep {

class ControlGroup {
 public:
  explicit ControlGroup(int64_t memory_bytes);
  // The time of so many cores, however many there are.
  struct Quota {
    double cores;
  };
  explicit ControlGroup(Quota quota);
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  // Empty when there is a group.
  const std::string& why_not() const { return why_not_; }
  // The file through which a process enters.
  std::string processes() const { return (folder_ / "cgroup.procs").string(); }

 private:
  void make(const std::string& controller, const std::string& version1, const std::string& version2,
            const std::string& value1, const std::string& value2);

  std::filesystem::path folder_;  // empty: none was made
  std::string why_not_;
};

}  // namespace lockstep
