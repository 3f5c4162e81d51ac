#include "cli/machine_noise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

#include "cli/processor_time.h"

namespace lockstep {
namespace {

// Less than this share of what there is disturbs nothing that is measured to a hundredth.
constexpr double kNoticed = 0.02;
constexpr int kHandOvers = 1000;
// The quickest of some tries: a thread that is interrupted says nothing about the machine.
constexpr int kTries = 5;
// A processor that does not answer for so many looks is another process's for now.
constexpr int kPatience = 1 << 22;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<int> allowed_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
  return processors;
}

void stay_on(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

// A number goes back and forth: each thread waits for its own parity and passes it on. False: the other did
// not answer.
bool pass_on(std::atomic<int>& ball, int parity) {
  for (int turn = parity; turn < 2 * kHandOvers; turn += 2) {
    for (int looks = 0; ball.load(std::memory_order_acquire) != turn; ++looks)
      if (looks == kPatience) return false;
    ball.store(turn + 1, std::memory_order_release);
  }
  return true;
}

}  // namespace

void add_processor_line(std::string_view stat, double ticks, MachineNoise& noise) {
  std::istringstream line{std::string(stat)};
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, softirq = 0, steal = 0;
  if (!(line >> name >> user >> nice >> system >> idle >> io >> irq >> softirq >> steal) || name != "cpu")
    return;
  noise.all += (user + nice + system + irq + softirq) / ticks;
  noise.stolen += steal / ticks;
}

int64_t storage_bytes_in(std::string_view io) {
  std::istringstream lines{std::string(io)};
  std::string name;
  for (int64_t bytes = 0; lines >> name >> bytes;)
    if (name == "read_bytes:") return bytes;
  return 0;
}

double delayed_in(std::string_view schedstat) {
  std::istringstream fields{std::string(schedstat)};
  double ran = 0, delayed = 0;
  return fields >> ran >> delayed ? delayed * 1e-9 : 0;
}

MachineNoise look_at_machine() {
  MachineNoise noise;
  add_processor_line(text_of("/proc/stat"), static_cast<double>(sysconf(_SC_CLK_TCK)), noise);
  noise.own = processor_seconds();
  noise.storage_bytes = storage_bytes_in(text_of("/proc/self/io"));
  std::error_code none;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", none))
    noise.delayed += delayed_in(text_of(thread.path() / "schedstat"));
  return noise;
}

MachineNoise MachineNoise::operator-(const MachineNoise& earlier) const {
  return {all - earlier.all, own - earlier.own, stolen - earlier.stolen, delayed - earlier.delayed,
          storage_bytes - earlier.storage_bytes};
}

double MachineNoise::others() const { return std::max(0.0, all - own); }

std::string MachineNoise::sentence(double seconds, int64_t bytes_read) const {
  std::vector<std::string> said;
  if (others() > kNoticed * seconds)
    said.push_back(
        fmt::format("other processes took {:.2f} processor seconds of {:.2f} s", others(), seconds));
  if (stolen > kNoticed * seconds)
    said.push_back(fmt::format("the hypervisor took {:.2f} processor seconds of {:.2f} s", stolen, seconds));
  if (storage_bytes > 0 && static_cast<double>(storage_bytes) > kNoticed * static_cast<double>(bytes_read))
    said.push_back(fmt::format("{:.0f} MB of {:.0f} came from a disk, not from memory",
                               static_cast<double>(storage_bytes) / 1e6,
                               static_cast<double>(bytes_read) / 1e6));
  return fmt::format("{}", fmt::join(said, "; "));
}

double nanoseconds_between_processors() {
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) return 0;
  double least = 0;
  for (int i = 0; i < kTries; ++i) {
    alignas(64) std::atomic<int> ball = -1;
    bool answered[2] = {false, false};
    std::chrono::steady_clock::time_point start;
    std::thread first([&] {
      stay_on(processors[0]);
      while (ball.load() == -1) std::this_thread::yield();
      start = std::chrono::steady_clock::now();
      answered[0] = pass_on(ball, 0);
    });
    std::thread second([&] {
      stay_on(processors[1]);
      ball.store(0);
      answered[1] = pass_on(ball, 1);
    });
    first.join();
    second.join();
    if (!answered[0] || !answered[1]) continue;
    const double taken =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
        (2 * kHandOvers);
    if (least == 0 || taken < least) least = taken;
  }
  return least;
}

}  // namespace lockstep
