#include "cli/bench_order.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <vector>

#include "data/order/read_order.h"

namespace lockstep {
namespace {

struct BenchOrder {
  int64_t records = 100'000'000;
  int64_t block = 256;
  int64_t window = 64;
  int64_t positions = 1 << 22;
};

// In kB.
int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// How positions are asked for: by microbatches of 64 neighbours in a lane, as steps do, or of 64 neighbours,
// or one by one anywhere.
enum class Asked : uint8_t { kByLane, kInOrder, kScattered };

// Nanoseconds a position.
double cost(const Order& order, int64_t positions, Asked asked) {
  constexpr int64_t kMicrobatch = 64;
  std::vector<int64_t> batch(asked == Asked::kScattered ? 1 : kMicrobatch);
  const auto size = static_cast<int64_t>(batch.size());
  const int64_t batches = positions / size;
  const int64_t stride = asked == Asked::kByLane ? order.lanes() : 1;
  int64_t sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t b = 0; b < batches; ++b) {
    const auto first = static_cast<int64_t>(mix64(static_cast<uint64_t>(b)) >> 1) % order.size();
    order.records(first, batch, stride);
    sum += batch[0];
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  // Without a use of the records nothing would be worked out.
  if (sum < 0) std::cerr << "negative records\n";
  return spent.count() / static_cast<double>(batches * size);
}

// The same for a mixture of three sources, by microbatches of 64 neighbouring positions.
double mixture_cost(const BenchOrder& options) {
  const int64_t part = std::max<int64_t>(1, options.records / 3);
  const ReadOrder order(1, {part, part, part}, {.block = options.block, .window = options.window},
                        Shuffle::kBlock, {{0, {5, 3, 2}}});
  std::vector<int64_t> batch(64);
  int64_t sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t first = 0; first < options.positions; first += 64) {
    for (size_t i = 0; i < batch.size(); ++i) batch[i] = first + static_cast<int64_t>(i);
    order.records_at(batch);
    sum += batch[0];
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  if (sum < 0) std::cerr << "negative records\n";
  return spent.count() / static_cast<double>(options.positions);
}

void run_bench_order(const BenchOrder& options) {
  const int64_t before = peak_memory();
  std::string line = fmt::format("{{\"records\":{},\"block\":{},\"window\":{}", options.records,
                                 options.block, options.window);
  for (const auto& [name, shuffle] : {std::pair("block", Shuffle::kBlock), {"global", Shuffle::kGlobal}}) {
    const OrderShape shape{.records = options.records, .block = options.block, .window = options.window};
    const Order order(1, shape, shuffle);
    cost(order, options.positions / 8, Asked::kByLane);  // brings the clock up
    line += fmt::format(",\"{0}_ns\":{1:.1f},\"{0}_in_order_ns\":{2:.1f},\"{0}_scattered_ns\":{3:.1f}", name,
                        cost(order, options.positions, Asked::kByLane),
                        cost(order, options.positions, Asked::kInOrder),
                        cost(order, options.positions, Asked::kScattered));
  }
  line += fmt::format(",\"mixture_ns\":{:.1f}", mixture_cost(options));
  std::cout << line
            << fmt::format(",\"memory_kb\":{},\"added_kb\":{}}}\n", peak_memory(), peak_memory() - before);
}

}  // namespace

void add_bench_order_command(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("order", "nanoseconds to work out which record stands at a position");
  auto options = std::make_shared<BenchOrder>();
  command->add_option("--records", options->records, "records of an epoch")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 48))
      ->capture_default_str();
  command->add_option("--block", options->block, "records of a block, a power of two")->capture_default_str();
  command->add_option("--window", options->window, "blocks of a window, a power of two")
      ->capture_default_str();
  command->add_option("--positions", options->positions, "how many to ask for")
      ->check(CLI::Range(int64_t{1} << 10, int64_t{1} << 32))
      ->capture_default_str();
  command->callback([options] { run_bench_order(*options); });
}

}  // namespace lockstep
