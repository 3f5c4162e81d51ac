#include "train/checkpoint/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>

#include "base/durable_file.h"
#include "base/error.h"

namespace lockstep {

RunLock::RunLock(const std::string& run_dir) {
  std::error_code failure;
  std::filesystem::create_directories(run_dir, failure);
  if (failure) throw_file_error("create", run_dir, failure.value());
  folder_ = FileDescriptor(::open(run_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_.number() < 0) throw_file_error("open", run_dir, errno);
  // Other failures mean that the file system knows no locks on folders; then nothing guards against a second
  // process.
  if (::flock(folder_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw UserError("another process writes into {}; end it, or choose another output folder", run_dir);
}

}  // namespace lockstep
