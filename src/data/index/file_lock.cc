#include "data/index/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep {

FileLock::FileLock(const std::string& path, Wait wait)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  const int how = wait == Wait::kYes ? LOCK_EX : LOCK_EX | LOCK_NB;
  int result = 0;
  while (file_ >= 0 && (result = flock(file_, how)) != 0 && errno == EINTR) {
  }
  held_ = result == 0 || errno != EWOULDBLOCK;
}

FileLock::~FileLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace lockstep
