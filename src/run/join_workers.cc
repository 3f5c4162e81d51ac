#include "run/join_workers.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "base/error.h"
#include "base/version.h"
#include "comm/shm/meeting.h"
#include "launch/rendezvous.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kMeeting{60000};
// Longer than an evaluation or a checkpoint of the leader, during which the others wait.
constexpr std::chrono::milliseconds kDeadline{600000};
constexpr const char* kMeetingKey = "shm/meeting";

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

std::unique_ptr<Transport> join_workers(const WorkerPlace& placement) {
  if (!placement.all_on_one_host())
    throw UserError("{}: workers on several hosts cannot be joined by this version; start them all on one",
                    describe(placement));
  Rendezvous rendezvous(placement, process_variables(), kMeeting);
  rendezvous.join({.same = {{"version", kVersion}}, .own = {{"host", host_name()}}});
  if (placement.rank == 0) rendezvous.store().set(kMeetingKey, shm::random_meeting_name());
  const std::string meeting = rendezvous.store().get(kMeetingKey, kMeeting);
  shm::ShmOptions options;
  options.limits.deadline = kDeadline;
  options.meeting_deadline = kMeeting;
  auto transport = shm::join_processes(meeting, static_cast<int>(placement.rank),
                                       static_cast<int>(placement.size), options);
  // Nobody leaves while another still needs the store.
  rendezvous.store().barrier("met", placement.size, kMeeting);
  return transport;
}

}  // namespace lockstep
