// Supervision with real processes: shells that end in every way a worker can.
#include "launch/worker_set.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/test_folder.h"
#include "launch/console.h"
#include "launch/environment.h"
#include "launch/error_file.h"
#include "launch/oom.h"
#include "launch/tcp.h"
#include "launch/worker_process.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLong{20000};

// Runs `script` in a shell once per worker, with short graces; what is shown lands in files of the folder.
class WorkerSetTest : public ::testing::Test {
 protected:
  WorkerSetOptions options(int64_t workers, const std::string& script) {
    WorkerSetOptions options;
    options.command = {"/bin/sh", "-c", script};
    options.layout.run_id = "test";
    options.layout.workers_per_node = workers;
    options.layout.token = "0123456789abcdef";
    options.layout.store = {"127.0.0.1", 1};
    options.layout.log_folder = folder_.path("logs");
    options.inherited = {{"PATH", "/usr/bin:/bin"}, {"FOLDER", folder_.path()}};
    options.out = out_.get();
    options.err = err_.get();
    options.grace = milliseconds(300);
    options.settle = milliseconds(50);
    options.agreement = milliseconds(100);
    options.farewell = milliseconds(300);
    return options;
  }
  WorkerSetResult run(int64_t workers, const std::string& script) {
    return run_workers(options(workers, script));
  }
  std::string shown(const std::string& name) const { return read_file(folder_.path(name)); }
  // The process numbers that workers wrote into files pid-RANK.
  pid_t pid_of(int64_t rank) const {
    const std::string path = folder_.path(fmt::format("pid-{}", rank));
    const TimePoint until = steady_clock::now() + kLong;
    while (steady_clock::now() < until) {
      std::error_code missing;
      if (std::filesystem::file_size(path, missing) > 0 && !missing) return std::stoi(read_file(path));
      std::this_thread::sleep_for(milliseconds(2));
    }
    throw InternalError("{} was not written", path);
  }
  // A worker that says who it is before it goes on. The file appears whole.
  static std::string introduce() {
    return "echo $$ > $FOLDER/p-$RANK; mv $FOLDER/p-$RANK $FOLDER/pid-$RANK; ";
  }

  static std::string wait_for(const std::string& file) {
    return fmt::format("until [ -e $FOLDER/{} ]; do sleep 0.02; done; ", file);
  }

  TestFolder folder_;

 private:
  Descriptor open_file(const std::string& name) const {
    return Descriptor(open(folder_.path(name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  }
  Descriptor out_ = open_file("out");
  Descriptor err_ = open_file("err");
};

// While it exists this process inherits orphans, and can see how they end.
struct OrphansComeHere {
  OrphansComeHere() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~OrphansComeHere() {
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }
  OrphansComeHere(const OrphansComeHere&) = delete;
  OrphansComeHere& operator=(const OrphansComeHere&) = delete;
};

void expect_killed(pid_t orphan) {
  int status = 0;
  EXPECT_EQ(waitpid(orphan, &status, 0), orphan);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}
void expect_gone(pid_t pid) { EXPECT_NE(kill(pid, 0), 0) << pid; }

// A terminal of its own, whose other end collects what is shown.
class PseudoTerminal {
 public:
  PseudoTerminal() : ours_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)) {
    grantpt(ours_.get());
    unlockpt(ours_.get());
    theirs_ = Descriptor(open(ptsname(ours_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  int descriptor() const { return theirs_.get(); }
  // What was written since the last call. The kernel passes it on when it has time, so a mark follows it.
  std::string shown() const {
    constexpr char kMark = '\x01';
    EXPECT_EQ(write(theirs_.get(), &kMark, 1), 1);
    std::string text;
    pollfd entry = {ours_.get(), POLLIN, 0};
    while (!text.ends_with(kMark) && poll(&entry, 1, 10'000) > 0) {
      std::array<char, 4096> some{};
      const ssize_t got = read(ours_.get(), some.data(), some.size());
      if (got > 0) text.append(some.data(), static_cast<size_t>(got));
    }
    EXPECT_TRUE(text.ends_with(kMark));
    return text.substr(0, text.size() - 1);
  }

 private:
  Descriptor ours_, theirs_;
};

// What rewrites a line of worker 0 on a terminal, and what its log has of it.
TEST_F(WorkerSetTest, TheLiveLineStaysBelowTheOthers) {
  const PseudoTerminal terminal;
  WorkerSetOptions live =
      options(2,
              "echo columns $LOCKSTEP_LIVE_COLUMNS; "
              "[ $RANK = 1 ] || { printf '\\rstep 1\\n\\rstep 2\\nnote\\n\\r\\nstep 3\\n' >&2; }");
  live.err = terminal.descriptor();
  live.layout.live_columns = 60;
  EXPECT_EQ(run_workers(live).exit_code, 0);
  const std::string shown_there = terminal.shown();
  // Each after the one before; lines end with a carriage return on a terminal.
  size_t at = 0;
  for (const char* part : {"worker-0 | note\r\n", "worker-0 | step 3\r\n"}) {
    at = shown_there.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " in " << shown_there;
  }
  EXPECT_EQ(shown_there.find("worker-0 | step 2"), std::string::npos) << shown_there;
  EXPECT_NE(shown("out").find("worker-0 | columns 60\n"), std::string::npos) << shown("out");
  EXPECT_NE(shown("out").find("worker-1 | columns\n"), std::string::npos) << shown("out");
  EXPECT_EQ(shown("logs/worker-0.log").find('\r'), std::string::npos);
  EXPECT_NE(shown("logs/worker-0.log").find("step 1\n"), std::string::npos) << "the first of ten seconds";
  EXPECT_EQ(shown("logs/worker-0.log").find("step 2\n"), std::string::npos);
}

TEST(Console, RewritesTheLiveLineInPlace) {
  const PseudoTerminal terminal;
  Console console(terminal.descriptor());
  ASSERT_GT(console.columns(), 0);
  console.live("step 1");
  console.flush();
  console.live("step 2");
  console.flush();
  EXPECT_EQ(terminal.shown(), "\rstep 1\x1b[K\rstep 2\x1b[K");
  console.line("note");
  console.flush();
  EXPECT_EQ(terminal.shown(), "\r\x1b[Knote\r\n\rstep 2\x1b[K");
  console.hide_live();
  EXPECT_EQ(terminal.shown(), "\r\x1b[K");
  console.flush();
  EXPECT_EQ(terminal.shown(), "\rstep 2\x1b[K");
  console.live("");
  console.flush();
  console.line("end");
  console.finish();
  EXPECT_EQ(terminal.shown(), "\r\x1b[Kend\r\n");
  console.live("step 3");
  console.flush();
  console.finish();
  EXPECT_EQ(terminal.shown(), "\rstep 3\x1b[K\r\n") << "what it said last stays";
  const Descriptor file(open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(Console(file.get()).columns(), 0);
}

TEST_F(WorkerSetTest, LinesCarryNamesAndAreKept) {
  const auto result = run(2, "echo out $RANK of $WORLD_SIZE; echo err >&2; printf unfinished");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.first_failure);
  for (const char* line : {"worker-0 | out 0 of 2\n", "worker-1 | out 1 of 2\n", "worker-1 | unfinished\n"})
    EXPECT_NE(shown("out").find(line), std::string::npos) << line;
  EXPECT_NE(shown("err").find("worker-0 | err\n"), std::string::npos);
  EXPECT_NE(shown("logs/worker-1.log").find("out 1 of 2\n"), std::string::npos);
  EXPECT_EQ(shown("logs/worker-1.log").find("worker-0"), std::string::npos);
}

TEST_F(WorkerSetTest, AFailureStopsTheOthersAndIsNamed) {
  const auto result = run(3, "[ $RANK = 1 ] && { echo about to fail; exit 9; }; sleep 60");
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(describe(*result.first_failure),
            "worker-1 failed first: exited with code 9\nits last lines:\n  about to fail\nall of them: " +
                folder_.path("logs/worker-1.log"));
}

TEST_F(WorkerSetTest, OfSeveralFailuresTheEarliestIsNamed) {
  // Worker 2 fails, tells the others, and is the last to end.
  const auto write_error = [](const char* time) {
    return fmt::format(
        R"(echo '{{"message": {{"message": "x", "extraInfo": {{"timestamp": "{}"}}, "errorCode": 1}}}}' )"
        R"(> $TORCHELASTIC_ERROR_FILE; )",
        time);
  };
  WorkerSetOptions patient =
      options(3, "if [ $RANK = 2 ]; then " + write_error("100.5") + wait_for("told") + "exit 1; fi; " +
                     write_error("101") + "touch $FOLDER/told; exit 1");
  patient.settle = kLong;
  const auto result = run_workers(patient);
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.first_failure->rank, 2);
}

TEST_F(WorkerSetTest, SignalsAreDecoded) {
  for (const auto& [signal, text] :
       {std::pair{"SEGV", "killed by SIGSEGV (Segmentation fault)"},
        std::pair{"KILL", "killed by SIGKILL (Killed)"}, std::pair{"ABRT", "killed by SIGABRT (Aborted)"},
        std::pair{"TERM", "killed by SIGTERM (Terminated)"}}) {
    const auto result = run(2, fmt::format("[ $RANK = 0 ] && kill -{} $$; sleep 60", signal));
    EXPECT_EQ(result.exit_code, 1);
    ASSERT_TRUE(result.first_failure);
    EXPECT_EQ(result.first_failure->rank, 0);
    EXPECT_EQ(result.first_failure->what, text);
  }
}

TEST_F(WorkerSetTest, WhoIgnoresTheRequestToEndIsKilled) {
  const auto result = run(2, "trap '' TERM; " + introduce() + wait_for("pid-0") +
                                 "[ $RANK = 1 ] && exit 1; while :; do sleep 60; done");
  EXPECT_EQ(result.exit_code, 1);
  expect_gone(pid_of(0));
}

TEST_F(WorkerSetTest, AVerdictOfAllKeepsItsCode) {
  EXPECT_EQ(run(3, "exit 6").exit_code, 6);
  EXPECT_EQ(run(3, "exit 3").exit_code, 3);
  // One alone, or two that differ, have failed.
  EXPECT_EQ(run(3, "[ $RANK = 0 ] && exit 3; sleep 60").exit_code, 1);
  EXPECT_EQ(run(2, "exit $((RANK + 2))").exit_code, 1);
  EXPECT_EQ(run(2, "exit 1").exit_code, 1);
}

// It alone looks at the output folder; the others lose it.
TEST_F(WorkerSetTest, AVerdictOfTheFirstWorkerOnItsFolderKeepsItsCode) {
  EXPECT_EQ(run(3, "[ $RANK = 0 ] && exit 2; sleep 60").exit_code, 2);
  EXPECT_EQ(run(3, "[ $RANK = 1 ] && exit 2; sleep 60").exit_code, 1);
}

TEST_F(WorkerSetTest, AfterACrashAllAreStartedAgain) {
  // Worker 1 fails in the first two starts.
  const std::string script =
      "echo start $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; "
      "[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT -lt 2 ] && kill -9 $$; "
      "[ $TORCHELASTIC_RESTART_COUNT -lt 2 ] && sleep 60; exit 0";
  WorkerSetOptions again = options(2, script);
  int prepared = 0;
  again.prepare = [&](RunLayout&) { ++prepared; };
  again.layout.most_restarts = 3;
  const auto result = run_workers(again);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.first_failure);
  EXPECT_EQ(prepared, 3);
  prepared = 0;
  again.layout.most_restarts = 1;
  const auto given_up = run_workers(again);
  EXPECT_EQ(given_up.exit_code, 1);
  ASSERT_TRUE(given_up.first_failure);
  EXPECT_EQ(given_up.first_failure->rank, 1);
  EXPECT_EQ(prepared, 2);
}

TEST_F(WorkerSetTest, AVerdictIsNotStartedAgain) {
  WorkerSetOptions verdict = options(2, "exit 3");
  int prepared = 0;
  verdict.prepare = [&](RunLayout&) { ++prepared; };
  verdict.layout.most_restarts = 3;
  EXPECT_EQ(run_workers(verdict).exit_code, 3);
  EXPECT_EQ(prepared, 1);
}

TEST_F(WorkerSetTest, ChildrenOfWorkersAreNotLeftBehind) {
  const OrphansComeHere orphans;
  run(2, "sleep 60 & echo $! > $FOLDER/p-$RANK; mv $FOLDER/p-$RANK $FOLDER/pid-$RANK; " + wait_for("pid-1") +
             "[ $RANK = 0 ] && exit 1; wait");
  expect_killed(pid_of(0));
  expect_killed(pid_of(1));
}

TEST_F(WorkerSetTest, AWorkerThatStandsStillIsReported) {
  // The other one gives up on it, as the deadline of a collective would make it do.
  std::thread stopper([&] {
    kill(pid_of(0), SIGSTOP);
    folder_.write("stopped", "");
  });
  const auto result =
      run(2, introduce() +
                 "[ $RANK = 0 ] && sleep 60; until [ -e $FOLDER/stopped ]; do sleep 0.02; done; "
                 "echo worker-0 does not answer; exit 1");
  stopper.join();
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.first_failure->rank, 1);
  EXPECT_EQ(result.first_failure->stopped, std::vector<int64_t>{0});
  expect_gone(pid_of(0));
}

TEST_F(WorkerSetTest, SignalsArePassedOnAndTheirCodesRespected) {
  for (const auto& [signal, trap, code] :
       {std::tuple{SIGTERM, "trap 'exit 75' TERM", 75}, std::tuple{SIGINT, "trap 'exit 130' INT", 130},
        std::tuple{SIGTERM, ":", 143}}) {
    std::filesystem::remove(folder_.path("pid-0"));
    std::filesystem::remove(folder_.path("pid-1"));
    const pthread_t launcher = pthread_self();
    std::thread sender([&, signal = signal] {
      pid_of(0);
      pid_of(1);
      pthread_kill(launcher, signal);
    });
    const auto result = run(2, fmt::format("{}; {} while :; do sleep 0.02; done", trap, introduce()));
    sender.join();
    EXPECT_EQ(result.exit_code, code);
    EXPECT_FALSE(result.first_failure);
  }
}

TEST_F(WorkerSetTest, AnEndThatTheOthersDoNotFollowIsAFailure) {
  const auto result = run(2, "[ $RANK = 0 ] && exit 75; sleep 60");
  EXPECT_EQ(result.exit_code, 1);
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.first_failure->what, "still ran 0.3 s after another worker had ended with code 75");
}

TEST_F(WorkerSetTest, WorkersDieWithTheLauncher) {
  const OrphansComeHere orphans;
  const pid_t launcher = fork();
  if (launcher == 0) {
    run(2, introduce() + "trap '' TERM INT HUP; while :; do sleep 0.1; done");
    _exit(0);
  }
  const pid_t workers[] = {pid_of(0), pid_of(1)};
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  for (const pid_t worker : workers) expect_killed(worker);
}

TEST_F(WorkerSetTest, AFloodOfOutputIsBounded) {
  // 16 MiB without a line's end, then many lines.
  const auto result = run(1, "head -c 16777216 /dev/zero; echo; seq 1 100000; exit 1");
  ASSERT_TRUE(result.first_failure);
  EXPECT_EQ(result.first_failure->last_lines.size(), 20u);
  EXPECT_EQ(result.first_failure->last_lines.back(), "100000");
  EXPECT_NE(shown("logs/worker-0.log").find("\n50000\n"), std::string::npos);
}

TEST_F(WorkerSetTest, AReaderThatIsStuckOrGoneDoesNotHoldUpTheRun) {
  for (const bool gone : {false, true}) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    Descriptor reader(ends[0]);
    const Descriptor writer(ends[1]);
    if (gone) reader.reset();
    WorkerSetOptions into_pipe = options(1, "seq 1 400000");
    into_pipe.out = writer.get();
    EXPECT_EQ(run_workers(into_pipe).exit_code, 0);
    EXPECT_NE(shown("logs/worker-0.log").find("\n400000\n"), std::string::npos);
  }
}

TEST_F(WorkerSetTest, AProgramThatIsNotThereIsAUserError) {
  WorkerSetOptions wrong = options(2, "");
  wrong.command = {"/no/such/program"};
  try {
    run_workers(wrong);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "cannot start /no/such/program: No such file or directory");
  }
}

TEST(ErrorFile, SaysWhenTheErrorCameUp) {
  TestFolder folder;
  const Variables variables = {{"TORCHELASTIC_ERROR_FILE", folder.path("error.json")}};
  EXPECT_FALSE(error_time(folder.path("error.json")));
  write_error_file(variables, "it \"failed\"", 1);
  EXPECT_GT(error_time(folder.path("error.json")).value(), 1.7e9);
  // torchrun reads the time by Python's int().
  const auto written = nlohmann::json::parse(read_file(folder.path("error.json")));
  const std::string time = written.at("message").at("extraInfo").at("timestamp");
  EXPECT_EQ(time.find_first_not_of("0123456789"), std::string::npos) << time;
  folder.write("error.json", R"({"message": {"message": "x", "extraInfo": {"timestamp": 12}}})");
  EXPECT_EQ(error_time(folder.path("error.json")), 12.0);
  folder.write("error.json", R"({"message": "killed"})");
  EXPECT_FALSE(error_time(folder.path("error.json")));
}

TEST(OomWatch, SeesACountRise) {
  TestFolder folder;
  folder.write("memory.events", "low 0\noom 1\noom_kill 1\noom_group_kill 0\n");
  OomWatch watch({folder.path("memory.events"), folder.path("absent")});
  EXPECT_FALSE(watch.killed());
  folder.write("memory.events", "low 0\noom 2\noom_kill 2\n");
  EXPECT_TRUE(watch.killed());
  EXPECT_FALSE(watch.killed());
}

TEST(Ending, OomKillerIsNamed) {
  EXPECT_EQ(describe(Ending{true, SIGKILL, true}), "killed by SIGKILL: the kernel's OOM killer");
}

TEST(WorkerVariables, PlaceTheWorkerWhereTheLayoutDoes) {
  RunLayout layout;
  layout.run_id = "fraud-1";
  layout.workers_per_node = 4;
  layout.master = {"127.0.0.1", 4000};
  layout.store = {"127.0.0.1", 4001};
  layout.token = "0123456789abcdef";
  layout.output = "/runs/fraud";
  layout.log_folder = "/runs/fraud/logs";
  layout.cores = 9;
  for (int64_t local = 0; local < 4; ++local) {
    const Variables variables =
        worker_variables(layout, local, {{"PATH", "/bin"}, {"AIP_MODEL_DIR", "gs://m"}});
    // CLUSTER_SPEC and TF_CONFIG are read too: all three say the same.
    const auto placement = placement_from(variables);
    ASSERT_TRUE(placement);
    EXPECT_EQ(placement->rank, local);
    EXPECT_EQ(placement->size, 4);
    EXPECT_EQ(placement->local_rank, local);
    EXPECT_EQ(variables.at("LOCKSTEP_STORE"), "127.0.0.1:4001");
    EXPECT_EQ(variables.at("AIP_MODEL_DIR"), "gs://m");
    EXPECT_EQ(variables.at("AIP_CHECKPOINT_DIR"), "/runs/fraud/checkpoints");
    EXPECT_EQ(variables.at("OMP_NUM_THREADS"), "2");
    EXPECT_EQ(variables.at("PATH"), "/bin");
    EXPECT_EQ(variables.at("TORCHELASTIC_ERROR_FILE"),
              fmt::format("/runs/fraud/logs/worker-{}.error.json", local));
  }
  // The second of two hosts, each started by Slurm.
  layout.nodes = 2;
  layout.node_rank = 1;
  const Variables second = worker_variables(layout, 3,
                                            {{"SLURM_STEP_ID", "0"},
                                             {"SLURM_PROCID", "1"},
                                             {"SLURM_NTASKS", "2"},
                                             {"SLURM_NNODES", "2"},
                                             {"SLURM_NODEID", "1"},
                                             {"SLURM_JOB_NODELIST", "gpu[1-2]"},
                                             {"SLURM_TASKS_PER_NODE", "1(x2)"}});
  EXPECT_EQ(placement_from(second)->rank, 7);
  EXPECT_EQ(second.at("NODE_RANK"), "1");
  EXPECT_FALSE(second.contains("TF_CONFIG"));
}

}  // namespace
}  // namespace lockstep
