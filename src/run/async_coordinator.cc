#include "run/async_coordinator.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/cores.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "launch/token.h"
#include "launch/worker_variables.h"
#include "prepare/pretrained.h"

namespace lockstep {
namespace {

using async::AsyncHeader;
using async::AsyncKind;
using async::Lease;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How often a worker that was killed is started again. One that fails by itself would fail again.
constexpr int64_t kMostStarts = 3;
// That processes have to end by themselves once the run is over.
constexpr milliseconds kFarewell{5000};

constexpr const char* kServerLost =
    "what it held since the last checkpoint is lost: start the run again, and it goes on from there "
    "(lockstep "
    "train --max-restarts N does so by itself)";

std::string text_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::string last_lines(const std::deque<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text.empty() ? "" : "; its last lines:" + text;
}

}  // namespace

std::string pushes_path(const std::string& folder) { return folder + "/pushes.log"; }

AsyncCoordinator::AsyncCoordinator(const JobParts& parts, TrainStep& train, AsyncOptions options)
    : parts_(parts), train_(train), options_(std::move(options)), servers_(parts, train) {
  if (!options_.replay.empty()) replayed_ = async::read_log(pushes_path(options_.replay));
}

// Behind the last push that the checkpoint has: what came after it is computed anew.
void AsyncCoordinator::open_log(int64_t step) {
  const std::string path = pushes_path(parts_.spec.output);
  header_ = {.staleness = parts_.spec.strategy.staleness,
             .servers = parts_.spec.strategy.servers,
             .identity = parts_.identity.sha256()};
  std::vector<async::AppliedPush> kept;
  if (step > 0) {
    const async::ApplyLog log = async::read_log(path);
    if (log.header != header_)
      throw UserError(
          "{} is the log of another run: its identity is {}, and the checkpoint's {}; start over "
          "with --fresh",
          path, log.header.identity, header_.identity);
    if (static_cast<int64_t>(log.pushes.size()) < step)
      throw UserError(
          "{} ends after push {}, and the checkpoint is of push {}: which records were used is not known; go "
          "on from an older checkpoint with --from, or start over with --fresh",
          path, log.pushes.size(), step);
    kept.assign(log.pushes.begin(), log.pushes.begin() + step);
  }
  log_ = std::make_unique<async::LogWriter>(path, header_, kept);
  table_.emplace(parts_.steps(), header_.staleness, kept);
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto age = static_cast<size_t>(static_cast<int64_t>(i) - kept[i].read);
    if (ages_.size() <= age) ages_.resize(age + 1);
    ++ages_[age];
  }
}

void AsyncCoordinator::begin(int64_t step, std::function<void(const std::string& text)> say) {
  say_ = std::move(say);
  if (replayed_) {
    const async::ApplyLog& log = *replayed_;
    const std::string path = pushes_path(options_.replay);
    if (step > 0)
      throw UserError(
          "a replay begins at the first push, and there is a checkpoint of push {}; "
          "give another output, or --fresh",
          step);
    if (log.header.identity != parts_.identity.sha256())
      throw UserError(
          "{} is of a run with the identity {}, and this job has {}: repeat it with the job, the data and "
          "the "
          "kind of processor that it had",
          path, log.header.identity, parts_.identity.sha256());
    if (log.tail_bytes > 0)
      say_(
          fmt::format("{} ends with {} bytes that are no push: the run was killed there, or the file is "
                      "damaged; {} pushes are repeated",
                      path, log.tail_bytes, log.pushes.size()));
    for (const async::AppliedPush& push : log.pushes) {
      if (push.lease > parts_.steps())
        throw UserError("{}: lease {} of a run of {} steps", path, push.lease, parts_.steps());
      to_grant_[push.read].push_back(push.lease);
    }
  }
  open_log(step);
  updates_ = train_.steps_applied();
  gathered_ = step;
  say_(fmt::format("asynchronous: {} worker{} push to {} server{}, weights at most {} updates behind{}",
                   options_.workers, options_.workers == 1 ? "" : "s", servers_.count(),
                   servers_.count() == 1 ? "" : "s", header_.staleness,
                   replayed_ ? fmt::format("; repeats {}", options_.replay) : ""));
  start_processes();
  wait_for_servers();
}

void AsyncCoordinator::start_processes() {
  token_ = token_from(options_.inherited);
  if (token_.empty()) token_ = random_token();
  started_ = steady_clock::now();
  door_ = std::make_unique<async::Door>(HostPort{"127.0.0.1", 0}, token_);
  crew_ = std::make_unique<async::Crew>(parts_.spec.output + "/logs", say_);
  const std::string address = to_string(door_->address());
  RunLayout layout;
  layout.store = door_->address();
  layout.token = token_;
  for (int64_t i = 0; i < servers_.count(); ++i) {
    Variables variables = server_variables(layout, options_.inherited);
    variables[kCoordinatorVariable] = address;
    std::vector<std::string> command = options_.server_command;
    command.push_back(std::to_string(i + 1));
    crew_->start(fmt::format("server-{}", i + 1), command, variables);
  }
  for (int64_t rank = 0; rank < options_.workers; ++rank) start_worker(rank);
}

void AsyncCoordinator::start_worker(int64_t rank) {
  const HostPort address = door_->address();
  const RunLayout layout{.run_id = parts_.spec.name,
                         .workers_per_node = options_.workers,
                         .master = address,
                         .store = address,
                         .token = token_,
                         .output = parts_.spec.output,
                         .log_folder = parts_.spec.output + "/logs",
                         .cores = available_cores().usable};
  Variables variables = worker_variables(layout, rank, options_.inherited);
  variables[kCoordinatorVariable] = to_string(address);
  crew_->start(worker_name(rank), options_.worker_command, variables);
}

void AsyncCoordinator::wait_for_servers() {
  const auto until = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                               std::chrono::duration<double>(parts_.spec.strategy.deadline));
  while (!servers_.complete()) {
    if (steady_clock::now() > until)
      throw CommError("{} did not come within {} s (strategy.deadline)", servers_.missing(),
                      parts_.spec.strategy.deadline);
    service(milliseconds(100));
  }
  servers_.load(table_->version(), updates_);
  loaded_ = true;
  service(milliseconds(0));
}

void AsyncCoordinator::service(milliseconds time) {
  std::vector<pollfd> entries = {{door_->news().get(), POLLIN, 0}};
  const auto add = [&](const async::Channel& channel) {
    entries.push_back(
        {channel.descriptor(), static_cast<short>(POLLIN | (channel.has_unsent() ? POLLOUT : 0)), 0});
  };
  servers_.each_channel(add);
  for (const async::Door::Guest& guest : guests_) add(*guest.channel);
  for (const Seat& seat : seats_) add(*seat.channel);
  crew_->add_to(entries);
  if (poll(entries.data(), entries.size(), static_cast<int>(time.count())) < 0 && errno != EINTR)
    throw DeviceError("poll: {}", std::strerror(errno));
  admit_guests();
  look_after_processes();
  move_servers();
  for (Seat& seat : seats_) {
    try {
      seat.channel->read_some([&](const AsyncHeader& header, std::span<const std::byte> payload) {
        hear(seat, header, payload);
      });
      if (loaded_ && !seat.greeted && !seat.name.empty()) greet(seat);
      seat.channel->write_some();
    } catch (const CommError& error) {
      lose(seat, error.what());
    }
  }
  look_for_stalled();
  std::erase_if(seats_, [](const Seat& seat) { return seat.over; });
  if (loaded_) grant_all();
}

// Who comes in says first what it is.
void AsyncCoordinator::admit_guests() {
  for (async::Door::Guest& guest : door_->guests()) guests_.push_back(std::move(guest));
  for (async::Door::Guest& guest : guests_) {
    try {
      std::string serves;
      std::optional<std::string> works;
      guest.channel->read_one(
          [&](const AsyncHeader& header, std::span<const std::byte> payload) {
            if (header.kind == AsyncKind::kServe)
              serves = text_of(payload);
            else if (header.kind == AsyncKind::kWork)
              works = text_of(payload);
            else
              throw CommError("it says neither that it serves nor that it works");
          },
          steady_clock::now());
      if (!serves.empty()) {
        int64_t index = -1;
        if (guest.name.starts_with("server-")) index = std::strtoll(guest.name.c_str() + 7, nullptr, 10) - 1;
        servers_.add(index, std::move(guest.channel), printable(serves));
      } else if (works) {
        if (*works != shared_part(parts_.identity).sha256()) {
          guest.channel->send(
              {.kind = AsyncKind::kEnd},
              "it is about to run something else: give it the same job file, data and version "
              "of Lockstep");
          guest.channel->write_some();
          throw CommError("its identity is another one");
        }
        seats_.push_back({.channel = std::move(guest.channel),
                          .number = ++seats_taken_,
                          .name = printable(guest.name).substr(0, 64)});
      }
    } catch (const CommError& error) {
      log_warn("{} was turned away: {}", printable(guest.name), error.what());
      guest.channel.reset();
    }
  }
  std::erase_if(guests_, [](const async::Door::Guest& guest) { return !guest.channel; });
}

void AsyncCoordinator::greet(Seat& seat) {
  seat.greeted = true;
  seat.channel->send({.kind = AsyncKind::kServers, .lease = static_cast<uint64_t>(seat.number)},
                     servers_.addresses());
  const std::vector<StateTensor>& frozen = train_.state().frozen();
  for (size_t i = 0; i < frozen.size(); ++i) {
    auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(frozen[i].bytes()));
    train_.backend().download(bytes->data(), frozen[i].data, frozen[i].bytes());
    seat.channel->send_pieces({.kind = AsyncKind::kFrozen, .index = static_cast<uint16_t>(i)}, bytes);
  }
}

void AsyncCoordinator::hear(Seat& seat, const AsyncHeader& header, std::span<const std::byte> payload) {
  if (header.kind == AsyncKind::kReady && seat.greeted && !seat.ready)
    seat.ready = true;
  else if (header.kind == AsyncKind::kPush)
    take_push(seat, header, async::push_facts(payload));
  else
    throw CommError("a frame of kind {} out of turn", static_cast<int>(header.kind));
}

void AsyncCoordinator::take_push(Seat& seat, const AsyncHeader& header, const async::PushFacts& facts) {
  if (!seat.lease || header.lease != static_cast<uint64_t>(seat.lease->number) ||
      header.attempt != static_cast<uint64_t>(seat.lease->attempt))
    throw CommError("a push of lease {}, which it does not have", header.lease);
  pushes_.push_back({*seat.lease, facts, seat.number});
  Work& work = work_[seat.name];
  ++work.pushes;
  work.seconds += facts.input + facts.compute;
  note_straggler(seat.name);
  // A worker goes on when its own push is in what it reads; a replay's knows by the log what to read.
  seat.lease.reset();
  if (!replays()) seat.ready = false;
}

void AsyncCoordinator::lose(Seat& seat, const std::string& why) {
  if (seat.over) return;
  seat.over = true;
  if (finished_) return;
  std::string text = fmt::format("{} is lost: {}", seat.name, why);
  if (seat.lease) {
    const Lease& lease = *seat.lease;
    servers_.order({.kind = AsyncKind::kDrop,
                    .lease = static_cast<uint64_t>(lease.number),
                    .attempt = static_cast<uint64_t>(lease.attempt)});
    table_->give_back(lease.number);
    ++leases_again_;
    if (replays() && lease.read != table_->version())
      throw CommError(
          "{}, with lease {}: the weights of version {} that it read are gone, so that the replay cannot go "
          "on; start it again with --fresh",
          text, lease.number, lease.read);
    if (replays()) to_grant_[lease.read].push_front(lease.number);
    text += fmt::format("; lease {} goes to another worker", lease.number);
  }
  say_(text);
  lost_.push_back(text);
}

void AsyncCoordinator::move_servers() {
  try {
    servers_.move();
  } catch (const CommError& error) {
    std::string still;
    for (int64_t i = 1; i <= servers_.count(); ++i)
      if (crew_->is_stopped(fmt::format("server-{}", i)))
        still += fmt::format("; server-{} stands still (SIGSTOP, or a debugger)", i);
    throw CommError("{}{}; {}", error.what(), still, kServerLost);
  }
}

void AsyncCoordinator::look_after_processes() {
  for (const async::Crew::Gone& gone : crew_->look()) {
    if (finished_) continue;
    const std::string how = describe(gone.ending);
    if (gone.name.starts_with("server-"))
      throw CommError("{} has ended: {}{}; {}", gone.name, how, last_lines(gone.last_lines), kServerLost);
    // What all find in the job or on the host, another one would find again.
    if (gone.ending.unanimous()) throw CommError("{} {}{}", gone.name, how, last_lines(gone.last_lines));
    bool told = false;
    for (Seat& seat : seats_)
      if (seat.name == gone.name) {
        lose(seat, how);
        told = true;
      }
    // Its connection may have told before.
    const auto known = [&](const std::string& text) { return text.starts_with(gone.name + " is lost"); };
    if (!told && std::none_of(lost_.begin(), lost_.end(), known)) {
      lost_.push_back(fmt::format("{} is lost: {}", gone.name, how));
      say_(lost_.back());
    }
    const int64_t rank = std::strtoll(gone.name.c_str() + std::strlen("worker-"), nullptr, 10);
    if (!gone.ending.by_signal || ++restarts_[gone.name] > kMostStarts) {
      require_workers();
      continue;
    }
    say_(fmt::format("{} is started again", gone.name));
    start_worker(rank);
  }
}

void AsyncCoordinator::require_workers() {
  if (seats_taken_ == 0 &&
      steady_clock::now() - started_ > std::chrono::duration<double>(parts_.spec.strategy.deadline))
    throw CommError("none of the {} workers has come within {} s (strategy.deadline)", options_.workers,
                    parts_.spec.strategy.deadline);
  for (int64_t rank = 0; rank < options_.workers; ++rank)
    if (crew_->is_running(worker_name(rank))) return;
  if (std::any_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return !seat.over; })) return;
  // Workers that have lost a server end too, maybe before it is seen that it did.
  std::vector<pollfd> entries;
  crew_->add_to(entries);
  constexpr int kSettle = 200;  // ms
  poll(entries.data(), entries.size(), kSettle);
  for (const async::Crew::Gone& gone : crew_->look())
    if (gone.name.starts_with("server-"))
      throw CommError("{} has ended: {}; {}", gone.name, describe(gone.ending), kServerLost);
  std::string all;
  for (const std::string& one : lost_) all += "\n  " + one;
  throw CommError("no worker is left:{}", all);
}

void AsyncCoordinator::look_for_stalled() {
  const std::chrono::duration<double> deadline(parts_.spec.strategy.deadline);
  const TimePoint now = steady_clock::now();
  for (Seat& seat : seats_) {
    if (seat.over || !seat.lease || now - seat.since < deadline) continue;
    const bool stands = crew_->is_stopped(seat.name);
    lose(seat, fmt::format("it has not come back with lease {} for {} s (strategy.deadline){}",
                           seat.lease->number, parts_.spec.strategy.deadline,
                           stands ? ", and stands still (SIGSTOP, or a debugger)" : ""));
    crew_->kill(seat.name);
  }
}

bool AsyncCoordinator::grant(Seat& seat) {
  std::optional<Lease> lease;
  if (replays()) {
    std::deque<int64_t>& waiting = to_grant_[table_->version()];
    if (waiting.empty()) return false;
    lease = table_->grant_again(waiting.front());
    waiting.pop_front();
  } else {
    lease = table_->grant();
  }
  if (!lease) return false;
  const auto number = static_cast<uint64_t>(lease->number), attempt = static_cast<uint64_t>(lease->attempt);
  const async::GiveOrder give{.worker = seat.number};
  servers_.order({.kind = AsyncKind::kGive, .lease = number, .attempt = attempt},
                 {reinterpret_cast<const char*>(&give), sizeof give});
  seat.channel->send({.kind = AsyncKind::kLease, .lease = number, .attempt = attempt});
  seat.lease = lease;
  seat.since = steady_clock::now();
  return true;
}

void AsyncCoordinator::grant_all() {
  bool granted = false;
  for (Seat& seat : seats_)
    if (seat.ready && !seat.over && !seat.lease) {
      if (!grant(seat)) break;
      granted = true;
    }
  if (!granted) return;
  move_servers();
  for (Seat& seat : seats_) {
    try {
      if (!seat.over) seat.channel->write_some();
    } catch (const CommError& error) {
      lose(seat, error.what());
    }
  }
}

// The first in the order in which they came whose turn it may be.
std::optional<size_t> AsyncCoordinator::next_push() const {
  if (replays()) {
    const int64_t version = table_->version();
    const auto waiting = to_grant_.find(version);
    if (waiting != to_grant_.end() && !waiting->second.empty()) return {};
    for (size_t i = 0; i < pushes_.size(); ++i)
      if (pushes_[i].lease.number == replayed_->pushes[static_cast<size_t>(version)].lease) return i;
    return {};
  }
  for (size_t i = 0; i < pushes_.size(); ++i)
    if (table_->may_apply(pushes_[i].lease.number)) return i;
  return {};
}

StepResult AsyncCoordinator::next(const Request& request) {
  service(milliseconds(0));
  std::optional<size_t> index;
  while (!(index = next_push())) {
    require_workers();
    service(milliseconds(50));
  }
  deciding_ = pushes_[*index];
  pushes_.erase(pushes_.begin() + static_cast<std::ptrdiff_t>(*index));
  return {.loss = deciding_->facts.loss,
          .count = deciding_->facts.count,
          .grad_norm = deciding_->facts.grad_norm,
          .request = request ? request() : 0};
}

void AsyncCoordinator::decide(double lr, bool skipped) {
  const Push push = *std::exchange(deciding_, std::nullopt);
  async::AppliedPush applied = table_->apply(push.lease.number);
  const int64_t version = table_->version();
  applied.skipped = skipped;
  if (replays() && replayed_->pushes[static_cast<size_t>(version - 1)] != applied)
    throw UserError(
        "push {} is {}, and the log of {} has it {}: the job, the data or the arithmetic is another", version,
        skipped ? "skipped" : "applied", options_.replay, skipped ? "applied" : "skipped");
  // Nothing is applied that is not written down.
  log_->append(applied);
  if (!skipped) ++updates_;
  const async::ApplyOrder order{.version = version,
                                .updates = updates_,
                                .lr = static_cast<float>(lr),
                                .scale = push.facts.scale,
                                .skipped = skipped ? 1 : 0};
  servers_.order({.kind = AsyncKind::kApply,
                  .lease = static_cast<uint64_t>(push.lease.number),
                  .attempt = static_cast<uint64_t>(push.lease.attempt)},
                 {reinterpret_cast<const char*>(&order), sizeof order});
  const auto age = static_cast<size_t>(version - 1 - applied.read);
  if (ages_.size() <= age) ages_.resize(age + 1);
  ++ages_[age];
  decided_ = push;
  for (Seat& seat : seats_)
    if (seat.number == push.worker) seat.ready = true;
  service(milliseconds(0));
}

int64_t AsyncCoordinator::last_step(int64_t last) const {
  return replays() ? std::min(last, static_cast<int64_t>(replayed_->pushes.size())) : last;
}

StepShares AsyncCoordinator::shares(double seconds) const {
  const async::PushFacts& facts = decided_->facts;
  const double total = facts.waited_for_params + facts.input + facts.compute + facts.sent;
  const double scale = total > 0 ? seconds / total : 0;
  return {.compute = facts.compute * scale,
          .exposed_comm = (facts.waited_for_params + facts.sent) * scale,
          .input_wait = facts.input * scale};
}

void AsyncCoordinator::gather() {
  if (is_gathered()) return;
  servers_.gather([this] { service(milliseconds(20)); });
  train_.restored(updates_);
  gathered_ = table_->version();
}

void AsyncCoordinator::finish(const std::string& why) {
  finished_ = true;
  if (!crew_) return;
  // Workers first: one who is not told yet takes a server that ends for a lost one.
  for (Seat& seat : seats_) {
    try {
      seat.channel->send({.kind = AsyncKind::kEnd}, why);
      seat.channel->write_some();
    } catch (const CommError&) {
      // It is over for it in any case.
    }
    worker_bytes_ += seat.channel->bytes_sent() + seat.channel->bytes_received();
  }
  try {
    servers_.order({.kind = AsyncKind::kEnd}, why);
    servers_.move();
  } catch (const CommError&) {
    // As above.
  }
  crew_->finish(kFarewell);
  if (log_) log_->sync();
}

std::vector<std::string> AsyncCoordinator::stragglers() const {
  constexpr double kMuchLonger = 2;
  constexpr int64_t kFewest = 3;
  std::vector<double> all;
  for (const auto& [name, work] : work_)
    if (work.pushes >= kFewest) all.push_back(work.seconds / static_cast<double>(work.pushes));
  std::vector<std::string> slow;
  const double middle = median(all);
  for (const auto& [name, work] : work_) {
    const double own = work.seconds / static_cast<double>(std::max<int64_t>(work.pushes, 1));
    if (work.pushes >= kFewest && all.size() > 1 && own > kMuchLonger * middle)
      slow.push_back(fmt::format("{} takes {:.3g} s for a lease, {:.1f} times the median of {:.3g} s", name,
                                 own, own / middle, middle));
  }
  return slow;
}

// Said once for each, while the run can still be helped.
void AsyncCoordinator::note_straggler(const std::string& name) {
  if (std::find(named_stragglers_.begin(), named_stragglers_.end(), name) != named_stragglers_.end()) return;
  for (const std::string& text : stragglers()) {
    if (!text.starts_with(name + " ")) continue;
    named_stragglers_.push_back(name);
    say_(text + "; the others do not wait for it before the bound of strategy.staleness");
  }
}

void AsyncCoordinator::fill(RunSummary& summary) const {
  summary.workers = options_.workers;
  AsyncSummary async{.staleness = parts_.spec.strategy.staleness,
                     .servers = servers_.count(),
                     .replayed = replays(),
                     .ages = ages_,
                     .leases_again = leases_again_,
                     .lost = lost_,
                     .stragglers = stragglers()};
  double sum = 0, count = 0;
  for (size_t age = 0; age < ages_.size(); ++age) {
    sum += static_cast<double>(age) * static_cast<double>(ages_[age]);
    count += static_cast<double>(ages_[age]);
  }
  async.mean_age = count > 0 ? sum / count : 0;
  std::error_code error;
  const auto bytes = std::filesystem::file_size(pushes_path(parts_.spec.output), error);
  if (!error) async.log_bytes = static_cast<int64_t>(bytes);
  summary.async = std::move(async);
  summary.network_bytes += servers_.bytes() + worker_bytes_;
}

}  // namespace lockstep
