#include "launch/worker_set.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/live_line.h"
#include "base/log.h"
#include "launch/console.h"
#include "launch/error_file.h"
#include "launch/oom.h"
#include "launch/placement.h"
#include "launch/signal_descriptor.h"
#include "launch/tcp.h"
#include "launch/worker_output.h"
#include "launch/worker_process.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Worker {
  int64_t rank;
  std::string name;
  WorkerOutput output;
  WorkerProcess process;
  LineSplitter out_lines = {};
  LineSplitter err_lines = {};
  TimePoint live_kept = {};  // when its live line last went into the log
  bool ended = false;
};

// A worker that failed, among all that did before they were told to stop.
struct Failed {
  const Worker* worker;
  std::optional<Ending> ending;  // none: it did not end
  std::string what;
  std::optional<double> time;  // by its error file
};

std::string log_path(const RunLayout& layout, const std::string& name) {
  if (layout.log_folder.empty()) return "";
  return fmt::format("{}/{}.log", layout.log_folder, name);
}

// Which of two failures is the cause: being killed, then the earlier error by the workers' own clocks.
bool is_cause(const Failed& a, const Failed& b) {
  const auto killed = [](const Failed& failed) { return failed.ending && failed.ending->by_signal; };
  if (killed(a) != killed(b)) return killed(a);
  return a.time && b.time && *a.time < *b.time;
}

std::string ordinal(int64_t number) {
  const bool teen = number / 10 % 10 == 1;
  const int64_t last = teen ? 0 : number % 10;
  return fmt::format("{}{}", number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

// A reader of the launcher's output that goes away (| head) is no reason to end a run: the log files remain.
class BrokenPipesIgnored {
 public:
  BrokenPipesIgnored() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~BrokenPipesIgnored() { std::signal(SIGPIPE, before_); }
  BrokenPipesIgnored(const BrokenPipesIgnored&) = delete;
  BrokenPipesIgnored& operator=(const BrokenPipesIgnored&) = delete;

 private:
  void (*before_)(int);
};

class WorkerSet {
 public:
  explicit WorkerSet(const WorkerSetOptions& options)
      : options_(options), layout_(options.layout), out_(options.out), err_(options.err) {}

  WorkerSetResult run();

 private:
  bool all_ended() const {
    return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->ended; });
  }
  void start();
  void start_servers();
  void end_servers();
  // Until all have ended.
  void watch();
  void start_again(const WorkerFailure& failure);
  void wait();
  void pass_on_signals();
  void read_lines(Worker& worker);
  void take_line(Worker& worker, std::string_view line, Console& console);
  void read_stream(Worker& worker, Descriptor& stream, LineSplitter& lines, Console& console);
  void reap();
  void judge(const Worker& worker, Ending ending);
  void fail(Failed failed, milliseconds delay);
  void stop_now();
  void stop_when_due();
  void send_to_all(int signal);
  WorkerSetResult result() const;

  const WorkerSetOptions& options_;
  RunLayout layout_;
  SignalDescriptor signals_;
  BrokenPipesIgnored broken_pipes_;
  OomWatch oom_;
  Console out_;
  Console err_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Worker>> servers_;
  int signals_seen_ = 0;
  int insisting_signals_ = 0;
  TimePoint stop_at_ = TimePoint::max();      // then SIGTERM
  TimePoint kill_at_ = TimePoint::max();      // then SIGKILL
  TimePoint farewell_at_ = TimePoint::max();  // then whoever still runs has failed
  bool stopping_ = false;                     // SIGTERM was sent because of a failure
  int orderly_code_ = 0;
  std::vector<Failed> failed_;    // in the order in which it was seen
  std::vector<int64_t> stopped_;  // ranks that stood still when the others were stopped
};

void WorkerSet::start() {
  if (options_.prepare) options_.prepare(layout_);
  if (!layout_.log_folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(layout_.log_folder, error);
    if (error) throw UserError("cannot make the folder {}: {}", layout_.log_folder, error.message());
  }
  start_servers();
  for (int64_t local = 0; local < layout_.workers_per_node; ++local) {
    const int64_t rank = layout_.rank_of(local);
    const std::string name = worker_name(rank);
    // One of an earlier start would be taken for the first error of this one.
    if (const std::string path = error_path(layout_, rank); !path.empty()) std::filesystem::remove(path);
    workers_.push_back(std::make_unique<Worker>(
        Worker{rank, name, WorkerOutput(log_path(layout_, name)),
               WorkerProcess(options_.command, worker_variables(layout_, local, options_.inherited))}));
  }
}

// Those of workers that have ended know the store of those alone.
void WorkerSet::start_servers() {
  servers_.clear();
  for (int64_t i = 0; i < options_.servers; ++i) {
    const std::string name = fmt::format("server-{}", i + 1);
    servers_.push_back(std::make_unique<Worker>(
        Worker{i, name, WorkerOutput(log_path(layout_, name)),
               WorkerProcess(options_.server_command, server_variables(layout_, options_.inherited))}));
  }
}

// They end by themselves when the workers have said goodbye; where these could not, they are told.
void WorkerSet::end_servers() {
  const TimePoint until = steady_clock::now() + options_.settle;
  const auto ended = [&] {
    return std::all_of(servers_.begin(), servers_.end(), [](const auto& server) { return server->ended; });
  };
  while (!ended() && steady_clock::now() < until) {
    std::vector<pollfd> entries;
    for (const auto& server : servers_)
      if (!server->ended) entries.push_back({server->process.ended().get(), POLLIN, 0});
    constexpr int kLookAgain = 20;  // ms
    poll(entries.data(), entries.size(), kLookAgain);
    for (const auto& server : servers_) {
      read_lines(*server);
      if (!server->ended && server->process.ending()) server->ended = true;
    }
  }
  for (const auto& server : servers_) read_lines(*server);
  servers_.clear();
}

WorkerSetResult WorkerSet::run() {
  start();
  watch();
  WorkerSetResult ended = result();
  while (ended.may_be_restarted && layout_.restarts < layout_.most_restarts && signals_seen_ == 0) {
    start_again(*ended.first_failure);
    watch();
    ended = result();
  }
  end_servers();
  out_.finish();
  if (out_.failure() != 0)
    err_.line(fmt::format("lockstep: cannot write standard output: {}{}", std::strerror(out_.failure()),
                          layout_.log_folder.empty() ? "" : "; all lines are in " + layout_.log_folder));
  err_.finish();
  return ended;
}

void WorkerSet::watch() {
  while (!all_ended()) {
    wait();
    pass_on_signals();
    for (const auto& worker : workers_) read_lines(*worker);
    for (const auto& server : servers_) read_lines(*server);
    reap();
    stop_when_due();
    out_.flush();
    err_.flush();
  }
}

void WorkerSet::start_again(const WorkerFailure& failure) {
  ++layout_.restarts;
  err_.line(fmt::format("lockstep: {}", describe(failure)));
  err_.line(
      fmt::format("lockstep: the workers are started again, for the {} of at most {} times: they go on from "
                  "the newest checkpoint",
                  ordinal(layout_.restarts), layout_.most_restarts));
  workers_.clear();
  failed_.clear();
  stopped_.clear();
  stopping_ = false;
  orderly_code_ = 0;
  stop_at_ = kill_at_ = farewell_at_ = TimePoint::max();
  start();
}

void WorkerSet::wait() {
  // Where the kernel cannot say that a child has ended, it is looked at this often.
  constexpr milliseconds kLookAgain{50};
  TimePoint until = std::min({stop_at_, kill_at_, farewell_at_});
  std::vector<pollfd> entries = {{signals_.descriptor().get(), POLLIN, 0}};
  for (const auto* processes : {&workers_, &servers_})
    for (const auto& worker : *processes) {
      entries.push_back({worker->process.out().get(), POLLIN, 0});
      entries.push_back({worker->process.err().get(), POLLIN, 0});
      if (worker->ended) continue;
      entries.push_back({worker->process.ended().get(), POLLIN, 0});
      if (!worker->process.ended()) until = std::min(until, steady_clock::now() + kLookAgain);
    }
  for (const Console* console : {&out_, &err_})
    if (console->pending()) entries.push_back({console->descriptor(), POLLOUT, 0});
  const int timeout = until == TimePoint::max() ? -1 : poll_timeout(until);
  if (poll(entries.data(), entries.size(), timeout) < 0 && errno != EINTR)
    throw DeviceError("poll: {}", std::strerror(errno));
}

void WorkerSet::pass_on_signals() {
  for (int signal = signals_.next(); signal != 0; signal = signals_.next()) {
    ++signals_seen_;
    // The first asks them to end after the step, the second at once; whoever asks again means it.
    constexpr int kPatience = 2;
    insisting_signals_ += insists(signal) ? 1 : 0;
    const bool kills = insisting_signals_ > kPatience;
    if (kills)
      err_.line(fmt::format("lockstep: SIG{} once more: the workers are killed", sigabbrev_np(signal)));
    send_to_all(kills ? SIGKILL : signal);
  }
}

// A live line is shown in place of the one before it, and logged as seldom as a worker without a terminal
// would print its progress.
void WorkerSet::take_line(Worker& worker, std::string_view line, Console& console) {
  if (const auto live = live_text(line)) {
    constexpr std::chrono::seconds kLogged{10};
    console.live(*live);
    if (live->empty() || steady_clock::now() - worker.live_kept < kLogged) return;
    worker.live_kept = steady_clock::now();
    return worker.output.keep(*live);
  }
  worker.output.keep(line);
  if (&console == &out_) err_.hide_live();  // both may show on one terminal
  console.line(fmt::format("{} | {}", worker.name, line));
}

void WorkerSet::read_stream(Worker& worker, Descriptor& stream, LineSplitter& lines, Console& console) {
  const auto take = [&](std::string_view line) { take_line(worker, line, console); };
  // A bound, so that one that prints without end does not keep the others from being watched.
  constexpr int kMostAtOnce = 16;
  std::array<char, size_t{64} << 10> buffer;
  for (int i = 0; i < kMostAtOnce && stream; ++i) {
    const ssize_t got = read(stream.get(), buffer.data(), buffer.size());
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

void WorkerSet::read_lines(Worker& worker) {
  read_stream(worker, worker.process.out(), worker.out_lines, out_);
  read_stream(worker, worker.process.err(), worker.err_lines, err_);
}

void WorkerSet::reap() {
  for (const auto& worker : workers_) {
    if (worker->ended) continue;
    if (const auto ending = worker->process.ending()) {
      read_lines(*worker);
      worker->ended = true;
      judge(*worker, *ending);
    }
  }
  for (const auto& server : servers_) {
    if (server->ended) continue;
    const auto ending = server->process.ending();
    if (!ending) continue;
    read_lines(*server);
    server->ended = true;
    if (!ending->done() && !all_ended())
      err_.line(fmt::format("lockstep: {} has ended: {}; the workers go on without it", server->name,
                            describe(*ending)));
  }
}

void WorkerSet::judge(const Worker& worker, Ending ending) {
  if (stopping_ || ending.done()) return;
  const bool asked = !ending.by_signal || signals_seen_ > 0;
  if (ending.orderly() && asked) {
    if (orderly_code_ == 0) orderly_code_ = ending.exit_code();
    farewell_at_ = std::min(farewell_at_, steady_clock::now() + options_.farewell);
    return;
  }
  if (ending.by_signal && ending.number == SIGKILL) ending.by_oom_killer = oom_.killed();
  fail({&worker, ending, describe(ending), error_time(error_path(layout_, worker.rank))},
       ending.unanimous() ? options_.agreement : options_.settle);
}

void WorkerSet::fail(Failed failed, milliseconds delay) {
  // Verdicts that differ are none: there is nothing to wait for.
  const bool differs = !failed_.empty() && !(failed_.front().ending == failed.ending);
  stop_at_ = std::min(stop_at_, steady_clock::now() + (differs ? options_.settle : delay));
  failed_.push_back(std::move(failed));
}

void WorkerSet::stop_when_due() {
  const TimePoint now = steady_clock::now();
  if (now >= farewell_at_) {
    farewell_at_ = TimePoint::max();
    const auto late =
        std::find_if(workers_.begin(), workers_.end(), [](const auto& worker) { return !worker->ended; });
    if (late != workers_.end() && !stopping_)
      fail({late->get(), std::nullopt,
            fmt::format("still ran {:g} s after another worker had ended with code {}",
                        std::chrono::duration<double>(options_.farewell).count(), orderly_code_),
            std::nullopt},
           milliseconds(0));
  }
  if (now >= stop_at_) stop_now();
  if (now >= kill_at_) {
    kill_at_ = TimePoint::max();
    send_to_all(SIGKILL);
  }
}

void WorkerSet::stop_now() {
  stop_at_ = TimePoint::max();
  stopping_ = true;
  kill_at_ = steady_clock::now() + options_.grace;
  send_to_all(SIGTERM);
  for (const auto& worker : workers_) {
    if (worker->ended || !worker->process.stopped()) continue;
    stopped_.push_back(worker->rank);
    worker->process.send(SIGKILL);  // it cannot take any other
  }
}

void WorkerSet::send_to_all(int signal) {
  for (const auto& worker : workers_)
    if (!worker->ended) worker->process.send(signal);
}

WorkerSetResult WorkerSet::result() const {
  if (failed_.empty()) return {orderly_code_, std::nullopt, false};
  const Failed& first = *std::min_element(failed_.begin(), failed_.end(), is_cause);
  const bool agreed = failed_.size() == workers_.size() && first.ending && first.ending->unanimous() &&
                      std::all_of(failed_.begin(), failed_.end(),
                                  [&](const Failed& one) { return one.ending == first.ending; });
  const WorkerOutput& output = first.worker->output;
  // Others wait for one who stands still and give up; a worker that a signal has killed did not wait. (A leak
  // checker lets its process stand still for a moment, too.)
  const bool waited = !first.ending || !first.ending->by_signal;
  // What one finds in its job or on its host, it would find again, also where the others did not come so far.
  const bool verdict = first.ending && first.ending->unanimous();
  // The output folder is worker 0's alone, and so is what it has to say about it: the others just lose it.
  constexpr int kBadUsage = 2;
  const bool of_leader = verdict && first.worker->rank == 0 && first.ending->exit_code() == kBadUsage &&
                         std::none_of(failed_.begin(), failed_.end(), [&](const Failed& one) {
                           return one.ending && one.ending->unanimous() && one.ending != first.ending;
                         });
  return {agreed || of_leader ? first.ending->exit_code() : 1,
          WorkerFailure{first.worker->rank,
                        first.what,
                        {output.last_lines().begin(), output.last_lines().end()},
                        output.log_path(),
                        waited ? stopped_ : std::vector<int64_t>()},
          !verdict};
}

}  // namespace

WorkerSetResult run_workers(const WorkerSetOptions& options) { return WorkerSet(options).run(); }

std::string describe(const WorkerFailure& failure) {
  std::string text;
  for (const int64_t rank : failure.stopped)
    text += fmt::format("{} stood still (SIGSTOP, or a debugger)\n", worker_name(rank));
  text += fmt::format("{} {}: {}", worker_name(failure.rank),
                      failure.stopped.empty() ? "failed first" : "gave up first", failure.what);
  if (failure.last_lines.empty()) {
    text += "\nit printed nothing";
  } else {
    text += "\nits last lines:";
    for (const std::string& line : failure.last_lines) text += fmt::format("\n  {}", line);
  }
  if (!failure.log_path.empty()) text += fmt::format("\nall of them: {}", failure.log_path);
  return text;
}

}  // namespace lockstep
