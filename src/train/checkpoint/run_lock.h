// One process writes checkpoints into a run's folder: two would delete each other's temporary folders. The
// system gives the lock back when the process ends, however it ends.
#pragma once
#include <string>

#include "base/file_descriptor.h"

namespace lockstep {

class RunLock {
 public:
  // Creates the folder where needed. Throws UserError if another process (or another lock here) holds it.
  explicit RunLock(const std::string& run_dir);

 private:
  FileDescriptor folder_;
};

}  // namespace lockstep
