// AsyncCoordinator: makes the steps of an asynchronous run. It starts the parameter servers and the workers
// of this host, hands out leases, and says in which order pushes are applied; every push is a step of the
// run, which decides about it as about any other (run/train_run.h).
//
//   worker                        servers                        coordinator
//                          <-------------------------------------   lease L, attempt a  (at version v)
//     parameters of v      <------  give L to worker  <----------   to all servers, behind apply v
//     gradient of L        ------>  staged under (L, a)
//     all have it: push L  ------------------------------------->   when its turn comes: log, then
//                                   apply L: version v + n  <-----   to all servers
//
// A server's orders come in one stream, so the parameters that a worker gets are of one version on all
// servers. What a dead worker has staged is dropped, and its lease handed out again. A lost server ends the
// run, which goes on from the last checkpoint when it is started again.
//
// In a replay the log of another run says which lease is next, and at which version each is given its
// parameters: the same weights come out of any number of workers.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/apply_log.h"
#include "async/crew.h"
#include "async/door.h"
#include "async/lease_table.h"
#include "run/param_servers.h"
#include "run/step_engine.h"

namespace lockstep {

struct AsyncOptions {
  int64_t workers = 1;
  std::vector<std::string> worker_command, server_command;  // the latter is given its number
  Variables inherited = process_variables();
  std::string replay;  // the folder of the run to repeat; empty: none
};

// Where the log of a run in this folder lies.
std::string pushes_path(const std::string& folder);
// In which a process started by the coordinator finds it.
inline constexpr const char* kCoordinatorVariable = "LOCKSTEP_COORDINATOR";

class AsyncCoordinator : public StepEngine {
 public:
  // UserError for a model that servers cannot hold, or a log that is not this job's.
  AsyncCoordinator(const JobParts& parts, TrainStep& train, AsyncOptions options);

  void begin(int64_t step, std::function<void(const std::string& text)> say) override;
  int64_t last_step(int64_t last) const override;
  StepResult next(const Request& request) override;
  void apply(double lr) override { decide(lr, false); }
  void skip() override { decide(0, true); }
  StepShares shares(double seconds) const override;
  void gather() override;
  bool is_gathered() const override { return table_ && gathered_ == table_->version(); }
  void sync() override { log_->sync(); }
  void still_working() override { service(std::chrono::milliseconds(0)); }
  void finish(const std::string& why) override;
  void fill(RunSummary& summary) const override;

 private:
  struct Seat {
    std::unique_ptr<async::Channel> channel;
    int64_t number = 0;                      // of all that ever came, from 1
    std::string name;                        // "worker-0"; empty until it has said it
    bool greeted = false;                    // it knows where the servers are
    bool ready = false;                      // and has reached them
    bool over = false;                       // to be forgotten
    std::optional<async::Lease> lease = {};  // that it computes
    TimePoint since = {};                    // when it got it
  };
  struct Push {
    async::Lease lease;
    async::PushFacts facts;
    int64_t worker = 0;  // its seat's number
  };
  // What a worker has done, by its name: also of those who are gone.
  struct Work {
    int64_t pushes = 0;
    double seconds = 0;  // from lease to push, without waiting
  };

  void open_log(int64_t step);
  void start_processes();
  void start_worker(int64_t rank);
  void wait_for_servers();
  // Lets what has come be heard, for at most so long.
  void service(std::chrono::milliseconds time);
  void admit_guests();
  void hear(Seat& seat, const async::AsyncHeader& header, std::span<const std::byte> payload);
  void greet(Seat& seat);
  void take_push(Seat& seat, const async::AsyncHeader& header, const async::PushFacts& facts);
  void look_after_processes();
  void move_servers();
  void look_for_stalled();
  void lose(Seat& seat, const std::string& why);
  void require_workers();
  // Hands out what may be.
  void grant_all();
  bool grant(Seat& seat);
  std::optional<size_t> next_push() const;
  void decide(double lr, bool skipped);
  void note_straggler(const std::string& name);
  std::vector<std::string> stragglers() const;
  bool replays() const { return replayed_.has_value(); }

  const JobParts& parts_;
  TrainStep& train_;
  AsyncOptions options_;
  std::optional<async::ApplyLog> replayed_;
  std::map<int64_t, std::deque<int64_t>> to_grant_;  // of a replay: by version, the leases that read it
  ParamServers servers_;
  std::string token_;
  std::function<void(const std::string&)> say_;
  std::optional<async::LeaseTable> table_;
  std::unique_ptr<async::LogWriter> log_;
  std::unique_ptr<async::Door> door_;
  std::unique_ptr<async::Crew> crew_;
  std::vector<async::Door::Guest> guests_;  // who have not said yet what they are
  std::deque<Seat> seats_;
  std::deque<Push> pushes_;       // that wait for their turn
  std::optional<Push> deciding_;  // the one that next() gave
  std::optional<Push> decided_;   // the last one
  TimePoint started_ = {};
  bool loaded_ = false;  // servers have the state
  bool finished_ = false;
  int64_t seats_taken_ = 0;
  int64_t updates_ = 0;
  int64_t gathered_ = 0;                     // the version that the run's state has
  std::map<std::string, int64_t> restarts_;  // of workers, by name
  std::map<std::string, Work> work_;
  std::vector<std::string> named_stragglers_;
  async::LogHeader header_;
  std::vector<int64_t> ages_;
  int64_t leases_again_ = 0;
  std::vector<std::string> lost_;
  int64_t worker_bytes_ = 0;
};

}  // namespace lockstep
