#include "run/folder_events.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep {

FolderEvents::FolderEvents(const std::string& folder) : inotify_(::inotify_init1(IN_CLOEXEC)) {
  constexpr uint32_t kMask = IN_CREATE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE;
  if (::inotify_add_watch(inotify_.number(), folder.c_str(), kMask) < 0)
    throw InternalError("cannot watch {}: errno {}", folder, errno);
}

std::optional<FolderEvent> FolderEvents::next(const ChildProcess& process) {
  while (waiting_.empty()) {
    std::array<pollfd, 2> files = {pollfd{inotify_.number(), POLLIN, 0},
                                   pollfd{process.descriptor(), POLLIN, 0}};
    if (::poll(files.data(), files.size(), -1) < 0 && errno != EINTR)
      throw InternalError("cannot poll: errno {}", errno);
    if ((files[0].revents & POLLIN) != 0)
      read_some();
    else if (files[1].revents != 0)
      return std::nullopt;
  }
  FolderEvent event = waiting_.front();
  waiting_.pop_front();
  return event;
}

void FolderEvents::read_some() {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::read(inotify_.number(), bytes.data(), bytes.size());
  for (ssize_t at = 0; at < count;) {
    inotify_event event{};
    std::memcpy(&event, bytes.data() + at, sizeof event);
    waiting_.push_back({bytes.data() + at + sizeof event, (event.mask & IN_CREATE) != 0});
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
}

}  // namespace lockstep
