#include "run/join_workers.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/error.h"
#include "base/version.h"
#include "comm/shm/meeting.h"
#include "launch/rendezvous.h"
#include "run/worker_facts.h"

namespace lockstep {
namespace {

constexpr const char* kMeetingKey = "shm/meeting";

WaitLimits limits_of(const JobSpec& spec) {
  WaitLimits limits;
  limits.deadline = std::chrono::milliseconds(static_cast<int64_t>(spec.strategy.deadline * 1000));
  // A word before the end, however short the deadline.
  limits.stall = std::min(limits.stall, limits.deadline / 2);
  return limits;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

std::unique_ptr<Transport> join_workers(const WorkerPlace& placement, const JobParts& parts) {
  if (!placement.all_on_one_host())
    throw UserError("{}: workers on several hosts cannot be joined by this version; start them all on one",
                    describe(placement));
  const WaitLimits limits = limits_of(parts.spec);
  Rendezvous rendezvous(placement, process_variables(), limits.deadline);
  WorkerFacts facts = {.same = shared_facts(parts), .own = {{"host", host_name()}}};
  facts.same.emplace("version", kVersion);
  rendezvous.join(facts);
  if (placement.rank == 0) rendezvous.store().set(kMeetingKey, shm::random_meeting_name());
  const std::string meeting = rendezvous.store().get(kMeetingKey, limits.deadline);
  shm::ShmOptions options;
  options.limits = limits;
  options.meeting_deadline = limits.deadline;
  auto transport = shm::join_processes(meeting, static_cast<int>(placement.rank),
                                       static_cast<int>(placement.size), options);
  // Nobody leaves while another still needs the store.
  rendezvous.store().barrier("met", placement.size, limits.deadline);
  return transport;
}

}  // namespace lockstep
