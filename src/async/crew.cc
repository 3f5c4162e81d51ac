#include "async/crew.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/error.h"
#include "launch/tcp.h"

namespace lockstep::async {
namespace {

void read_stream(Descriptor& stream, LineSplitter& lines, const LineSplitter::Take& take) {
  // A bound, so that one that prints without end does not keep the others from being watched.
  constexpr int kMostAtOnce = 16;
  std::array<char, size_t{64} << 10> buffer;
  for (int i = 0; i < kMostAtOnce && stream; ++i) {
    const ssize_t got = ::read(stream.get(), buffer.data(), buffer.size());
    if (got > 0) {
      lines.feed({buffer.data(), static_cast<size_t>(got)}, take);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      lines.finish(take);
      stream.reset();
    } else {
      return;
    }
  }
}

}  // namespace

Crew::Crew(std::string log_folder, std::function<void(const std::string&)> show)
    : log_folder_(std::move(log_folder)), show_(std::move(show)) {
  std::error_code error;
  std::filesystem::create_directories(log_folder_, error);
  if (error) throw UserError("cannot make the folder {}: {}", log_folder_, error.message());
}

Crew::~Crew() = default;

void Crew::start(const std::string& name, const std::vector<std::string>& command,
                 const Variables& variables) {
  members_.push_back(std::make_unique<Member>(Member{
      name, WorkerOutput(fmt::format("{}/{}.log", log_folder_, name)), WorkerProcess(command, variables)}));
}

void Crew::add_to(std::vector<pollfd>& entries) const {
  for (const auto& member : members_) {
    if (member->process.out()) entries.push_back({member->process.out().get(), POLLIN, 0});
    if (member->process.err()) entries.push_back({member->process.err().get(), POLLIN, 0});
    if (!member->ended && member->process.ended())
      entries.push_back({member->process.ended().get(), POLLIN, 0});
  }
}

void Crew::read(Member& member) {
  const auto take = [&](std::string_view line) {
    member.output.keep(line);
    show_(fmt::format("{} | {}", member.name, line));
  };
  read_stream(member.process.out(), member.out_lines, take);
  read_stream(member.process.err(), member.err_lines, take);
}

std::vector<Crew::Gone> Crew::look() {
  std::vector<Gone> gone;
  for (const auto& member : members_) {
    if (member->ended) continue;
    std::optional<Ending> ending = member->process.ending();
    read(*member);
    if (!ending) continue;
    member->ended = true;
    if (ending->by_signal && ending->number == SIGKILL) ending->by_oom_killer = oom_.killed();
    gone.push_back({member->name, *ending, member->output.last_lines()});
  }
  return gone;
}

void Crew::kill(const std::string& name) {
  for (const auto& member : members_)
    if (member->name == name) member->process.send(SIGKILL);
}

bool Crew::is_stopped(const std::string& name) const {
  for (const auto& member : members_)
    if (member->name == name && !member->ended && member->process.stopped()) return true;
  return false;
}

bool Crew::is_running(const std::string& name) const {
  for (const auto& member : members_)
    if (member->name == name && !member->ended) return true;
  return false;
}

void Crew::finish(std::chrono::milliseconds grace) {
  const TimePoint until = std::chrono::steady_clock::now() + grace;
  const auto any_left = [&] {
    for (const auto& member : members_)
      if (!member->ended) return true;
    return false;
  };
  while (any_left() && std::chrono::steady_clock::now() < until) {
    std::vector<pollfd> entries;
    add_to(entries);
    constexpr int kLookAgain = 20;  // ms
    poll(entries.data(), entries.size(), kLookAgain);
    look();
  }
  members_.clear();
}

}  // namespace lockstep::async
