#include "hosts/train_hosts.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

// Starts this host's workers, waits for all, and ends with the highest exit code. The arguments: workers and
// hosts in all, this host, the master's address; then the command. The address sanitizer's search for leaks
// crashes in its own walk over threads when some of these workers end; workers of one host are searched.
constexpr const char* kStartWorkers = R"sh(
workers=$1 hosts=$2 host=$3 master=$4
shift 4
count=$((workers / hosts + (host < workers % hosts)))
first=$((workers / hosts * host + (host < workers % hosts ? host : workers % hosts)))
running=() worst=0
for ((i = 0; i < count; ++i)); do
  env ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" RANK=$((first + i)) \
    WORLD_SIZE=$workers LOCAL_RANK=$i LOCAL_WORLD_SIZE=$count MASTER_ADDR=$master MASTER_PORT=29500 \
    LOCKSTEP_TOKEN=0123456789abcdef0123456789abcdef "$@" &
  running+=($!)
done
for process in "${running[@]}"; do
  code=0
  wait "$process" || code=$?
  ((code <= worst)) || worst=$code
done
exit "$worst"
)sh";

std::vector<std::string> command(const TrainCase& job, const std::string& run, const WorkerLayout& layout,
                                 std::vector<std::string> settings) {
  if (layout.threads > 0) settings.push_back(fmt::format("strategy.threads={}", layout.threads));
  settings.push_back("strategy.transport=" + layout.transport);
  settings.emplace_back("strategy.deadline=30");
  std::vector<std::string> all = {
      "bash",    "-c",     kStartWorkers, "start",         std::to_string(layout.workers),
      "{hosts}", "{host}", "{master}",    LOCKSTEP_PROGRAM};
  const std::vector<std::string> arguments = job.arguments(run, settings);
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

}  // namespace

std::string WorkerLayout::text() const {
  return fmt::format("{}-workers-{}-threads-{}-hosts-{}", workers, threads, hosts, transport);
}

TrainHosts::TrainHosts(const TrainCase& job, const std::string& run, const WorkerLayout& layout,
                       const std::vector<std::string>& settings)
    : job_(job),
      run_(run),
      box_({.hosts = layout.hosts}, command(job, run, layout, settings), job.log(run)) {}

RunSummary TrainHosts::trained() {
  const std::vector<Ended> ended = box_.wait();
  for (size_t host = 0; host < ended.size(); ++host)
    EXPECT_EQ(ended[host].code, 0) << "host " << host << ": " << ended[host].err;
  return job_.has(run_, "summary.json") ? job_.summary(run_) : RunSummary{};
}

}  // namespace lockstep
