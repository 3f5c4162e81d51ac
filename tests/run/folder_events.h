// What a process does in a folder, as it happens: files that appear, change, get another name or go. A test
// that acts after the n-th of these acts at a moment of the run, however fast the machine is.
#pragma once
#include <deque>
#include <optional>
#include <string>

#include "run/lockstep_process.h"

namespace lockstep {

struct FolderEvent {
  std::string name;      // in the folder
  bool created = false;  // else changed, renamed or removed
};

class FolderEvents {
 public:
  // The folder exists.
  explicit FolderEvents(const std::string& folder);

  // Waits; nothing: the process has ended.
  std::optional<FolderEvent> next(const ChildProcess& process);

 private:
  void read_some();

  FileDescriptor inotify_;
  std::deque<FolderEvent> waiting_;
};

}  // namespace lockstep
