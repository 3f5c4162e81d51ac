#include "async/door.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace lockstep::async {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kStrangerTime{5};
constexpr size_t kMostStrangers = 64;

Descriptor make_event() {
  Descriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw DeviceError("eventfd: {}", std::strerror(errno));
  return event;
}

void notify(const Descriptor& event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event.get(), &one, sizeof one);
}

// Signals belong to whoever waits for them.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

Door::Door(const HostPort& listen, std::string token)
    : host_(listen.host),
      token_(std::move(token)),
      listener_(listen_on(listen)),
      port_(bound_port(listener_)),
      news_(make_event()),
      stop_(make_event()),
      thread_([this] { watch(); }) {}

Door::~Door() {
  notify(stop_);
  thread_.join();
}

void Door::watch() noexcept {
  block_signals();
  while (true) {
    std::array<pollfd, 2> entries = {pollfd{listener_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
    poll(entries.data(), entries.size(), -1);
    if (entries[1].revents != 0) break;
    for (auto at = visits_.begin(); at != visits_.end();) {
      const auto next = std::next(at);
      if (at->over) {
        at->thread.join();
        visits_.erase(at);
      }
      at = next;
    }
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) continue;
    if (visits_.size() >= kMostStrangers) {
      ++strangers_;
      continue;  // closed: those who wait have their time, and end
    }
    Visit& visit = visits_.emplace_back();
    visit.descriptor = socket.get();
    visit.thread = std::thread(
        [this, &visit, socket = std::move(socket)]() mutable { admit(std::move(socket), visit); });
  }
  {
    const std::lock_guard lock(mutex_);
    for (const Visit& visit : visits_)
      if (visit.descriptor >= 0) shutdown(visit.descriptor, SHUT_RDWR);
  }
  for (Visit& visit : visits_) visit.thread.join();
}

void Door::admit(Descriptor socket, Visit& visit) noexcept {
  const std::string peer = peer_of(socket);
  try {
    std::string name = recognise(socket, kAsyncProtocol, token_, steady_clock::now() + kStrangerTime);
    const std::lock_guard lock(mutex_);
    visit.descriptor = -1;
    guests_.push_back({std::make_unique<Channel>(std::move(socket)), std::move(name)});
    notify(news_);
  } catch (const std::exception& error) {
    // The first is worth a line; a port scanner is not worth a thousand.
    if (++strangers_ == 1) log_warn("turned away a stranger at {}: {}", peer, error.what());
    const std::lock_guard lock(mutex_);
    visit.descriptor = -1;
    socket.reset();
  }
  visit.over = true;
}

std::vector<Door::Guest> Door::guests() {
  uint64_t seen = 0;
  [[maybe_unused]] const ssize_t got = read(news_.get(), &seen, sizeof seen);
  const std::lock_guard lock(mutex_);
  return std::exchange(guests_, {});
}

}  // namespace lockstep::async
