// N ranks (cli/bench_ranks.h) sum a buffer of each size again and again; rank 0 prints a table in the columns
// of nccl-tests. algbw is size over time; busbw is algbw * 2(N-1)/N, the traffic that every
// rank must have at least, so that figures of different N can be compared. #wrong counts elements whose bits
// differ from the canonical tree. With --floor the bare movement of the data (cli/movement_floor.h) is
// measured after each size by the same ranks.
#include "cli/bench_allreduce.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "cli/bench_ranks.h"
#include "cli/movement_floor.h"
#include "comm/group.h"
#include "comm/leaf_stack.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  BenchRanks ranks = {};
  std::vector<std::string> sizes = {"4K", "64K", "1M", "16M", "64M", "256M"};
  int64_t leaves = 0;  // 0: one a worker
  std::string order = "canonical";
  double seconds = 0.5;  // of measuring per size
  bool json = false;
  bool floor = false;
  bool in_use = false;
};

struct Row {
  int64_t bytes = 0;
  double microseconds = 0;
  int64_t wrong = 0;
  std::optional<double> floor_microseconds = {};
};

int64_t parse_size(const std::string& text) {
  size_t used = 0;
  int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const int64_t scale = unit.empty()  ? 1
                        : unit == "K" ? 1 << 10
                        : unit == "M" ? 1 << 20
                        : unit == "G" ? 1 << 30
                                      : 0;
  if (used == 0 || scale == 0 || value <= 0 || value * scale % 4 != 0)
    throw UserError("--sizes: '{}' is not a size; write bytes that are a multiple of 4, or 64K, 1M, 1G",
                    text);
  return value * scale;
}

// Element i of a leaf: magnitudes differ, so that another order would give other bits.
float leaf_value(int64_t leaf, int64_t i) {
  const uint64_t bits = (static_cast<uint64_t>(leaf + 1) * 0x9E3779B97F4A7C15U) ^
                        (static_cast<uint64_t>(i + 1) * 0xBF58476D1CE4E5B9U);
  return static_cast<float>(static_cast<int64_t>(bits >> 40) - (1 << 23)) *
         static_cast<float>(1 << ((bits >> 8) & 7));
}

// The sum over leaves [begin, end) of element i, by the canonical tree over `leaves`.
float subtree_value(LeafRange range, int64_t leaves, int64_t i) {
  LeafStack stack(leaves);
  std::vector<float> slots;
  for (int64_t leaf = range.begin; leaf < range.end; ++leaf) {
    slots.push_back(leaf_value(leaf, i));
    stack.push({leaf, leaf + 1}, [&](int64_t into, int64_t from) {
      slots[static_cast<size_t>(into)] += slots[static_cast<size_t>(from)];
      slots.pop_back();
    });
  }
  return slots.at(0);
}

class Rank {
 public:
  Rank(Group& group, const Options& options, MovementFloor* floor)
      : group_(group), options_(options), floor_(floor) {}

  Row measure(int64_t bytes) {
    count_ = bytes / 4;
    const LeafSplit& split = group_.split();
    const bool fast = options_.order == "fast";
    const size_t partials = fast ? 1 : split.partials(group_.rank()).size();
    std::vector<SharedBuffer> buffers;
    std::vector<void*> pointers;
    for (size_t i = 0; i < partials; ++i) {
      buffers.push_back(group_.allocate(bytes));
      pointers.push_back(buffers.back().data());
    }
    Reduction reduction;
    reduction.count = count_;
    reduction.partials = pointers;
    reduction.order = fast ? SumOrder::kFast : SumOrder::kCanonical;

    Row row;
    row.bytes = bytes;
    fill(buffers);
    group_.all_reduce(reduction);
    row.wrong = fast ? 0 : wrong(buffers[0].as<float>());
    for (SharedBuffer& buffer : buffers) std::memset(buffer.data(), 0, static_cast<size_t>(bytes));
    row.microseconds = time(reduction);
    if (floor_ != nullptr && bytes >= MovementFloor::kLeastBytes)
      row.floor_microseconds = floor_->microseconds(group_.rank(), bytes, options_.seconds);
    return row;
  }

 private:
  // Large buffers are checked at every so many elements.
  int64_t stride() const { return std::max<int64_t>(1, count_ / (1 << 18)); }

  void fill(std::vector<SharedBuffer>& buffers) {
    const LeafSplit& split = group_.split();
    for (size_t b = 0; b < buffers.size(); ++b)
      for (int64_t i = 0; i < count_; i += stride())
        buffers[b].as<float>()[i] = subtree_value(split.partials(group_.rank()).at(b), split.leaves(), i);
  }

  int64_t wrong(const float* sums) const {
    const int64_t leaves = group_.split().leaves();
    int64_t wrong = 0;
    for (int64_t i = 0; i < count_; i += stride()) {
      const float expected = subtree_value({0, leaves}, leaves, i);
      wrong += std::bit_cast<uint32_t>(expected) != std::bit_cast<uint32_t>(sums[i]) ? 1 : 0;
    }
    return wrong;
  }

  // What a step does with gradients before and after they are summed.
  void write(const Reduction& reduction) const {
    for (void* partial : reduction.partials) {
      auto* const elements = static_cast<float*>(partial);
      for (int64_t i = 0; i < count_; ++i) elements[i] = 1.0F;
    }
  }
  void read(const Reduction& reduction) {
    const auto* const elements = static_cast<const uint32_t*>(reduction.partials[0]);
    uint32_t seen = 0;
    for (int64_t i = 0; i < count_; ++i) seen ^= elements[i];
    seen_ = seen;
  }

  // Median over batches; within a batch calls follow each other, as in nccl-tests.
  double time(const Reduction& reduction) {
    const auto run = [&](int64_t calls) {
      group_.barrier();
      const auto start = Clock::now();
      for (int64_t i = 0; i < calls; ++i) {
        if (options_.in_use) write(reduction);
        group_.all_reduce(reduction);
        if (options_.in_use) read(reduction);
      }
      return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(calls);
    };
    run(2);
    // All ranks must agree on how many calls there are: rank 0 decides.
    std::array<int64_t, 2> plan{};
    const double once = std::max(run(3), 1e-7);
    plan[0] = std::clamp<int64_t>(static_cast<int64_t>(options_.seconds / 11 / once), 1, 5000);
    plan[1] = std::clamp<int64_t>(
        static_cast<int64_t>(options_.seconds / once / static_cast<double>(plan[0])), 5, 11);
    group_.broadcast(std::as_writable_bytes(std::span(plan)), 0);
    std::vector<double> times;
    for (int64_t i = 0; i < plan[1]; ++i) times.push_back(run(plan[0]) * 1e6);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  Group& group_;
  const Options& options_;
  MovementFloor* floor_;
  int64_t count_ = 0;
  volatile uint32_t seen_ = 0;  // so that reading is not left out
};

// size over time, in GB/s
double floor_bandwidth(const Row& row) {
  return static_cast<double>(row.bytes) / *row.floor_microseconds / 1e3;
}

void print(const Options& options, const LeafSplit& split, std::string_view transport,
           const std::vector<Row>& rows) {
  const int workers = split.ranks();
  const double share = 2.0 * (workers - 1) / workers;
  if (options.json) {
    nlohmann::json report = {
        {"workers", workers},       {"transport", transport},           {"order", options.order},
        {"leaves", split.leaves()}, {"threads", options.ranks.threads}, {"sizes", nlohmann::json::array()}};
    for (const Row& row : rows) {
      const double algorithm = static_cast<double>(row.bytes) / row.microseconds / 1e3;
      report["sizes"].push_back({{"bytes", row.bytes},
                                 {"time_us", row.microseconds},
                                 {"algbw_gb_s", algorithm},
                                 {"busbw_gb_s", algorithm * share},
                                 {"wrong", row.wrong}});
      if (!row.floor_microseconds) continue;
      report["sizes"].back()["floor_us"] = *row.floor_microseconds;
      report["sizes"].back()["floor_busbw_gb_s"] = floor_bandwidth(row) * share;
    }
    std::cout << report.dump() << "\n";
    return;
  }
  std::cout << fmt::format("# all_reduce over {}, {} {}, {} order, {}\n", transport, workers,
                           options.ranks.threads ? "threads" : "processes", options.order, split.text());
  std::cout << fmt::format("#{:>13}{:>14}{:>8}{:>12}{:>12}{:>12}{:>8}{:>14}\n", "size (B)", "count", "type",
                           "time (us)", "algbw(GB/s)", "busbw(GB/s)", "#wrong",
                           options.floor ? "floor(GB/s)" : "");
  for (const Row& row : rows) {
    const double algorithm = static_cast<double>(row.bytes) / row.microseconds / 1e3;
    std::cout << fmt::format("{:>14}{:>14}{:>8}{:>12.1f}{:>12.2f}{:>12.2f}{:>8}", row.bytes, row.bytes / 4,
                             "f32", row.microseconds, algorithm, algorithm * share, row.wrong);
    std::cout << (row.floor_microseconds ? fmt::format("{:>14.2f}\n", floor_bandwidth(row) * share) : "\n");
  }
}

void run_rank(std::unique_ptr<Transport> transport, const Options& options, MovementFloor* floor) {
  const int workers = transport->size();
  const LeafSplit split =
      options.leaves == 0 ? LeafSplit::one_each(workers) : LeafSplit::search(options.leaves, workers);
  const std::string name(transport->name());
  Group group(std::move(transport), split);
  Rank rank(group, options, floor);
  std::vector<Row> rows;
  for (const std::string& size : options.sizes) rows.push_back(rank.measure(parse_size(size)));
  if (group.rank() == 0) print(options, split, name, rows);
  for (const Row& row : rows)
    if (row.wrong > 0) throw InternalError("{} elements of {} bytes are wrong", row.wrong, row.bytes);
}

void run_bench_allreduce(const Options& options) {
  if (options.order != "canonical" && options.order != "fast")
    throw UserError("--order {}: use canonical or fast", options.order);
  int64_t most = 0;
  for (const std::string& size : options.sizes) most = std::max(most, parse_size(size));
  std::unique_ptr<MovementFloor> floor;
  if (options.floor) {
    if (options.ranks.transport == "ucx" || ranks_are_placed())
      throw UserError("--floor measures memory that ranks share; it is for ranks that this command starts");
    floor = std::make_unique<MovementFloor>(started_ranks(options.ranks), most);
  }
  BenchRanks ranks = options.ranks;
  ranks.leaves = options.leaves;
  run_on_ranks(ranks, [&](std::unique_ptr<Transport> transport) {
    run_rank(std::move(transport), options, floor.get());
  });
}

}  // namespace

void add_bench_allreduce_command(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("allreduce", "sums over local ranks, in the columns of nccl-tests");
  auto options = std::make_shared<Options>();
  add_rank_options(*command, options->ranks);
  command->add_option("--sizes", options->sizes, "bytes of a buffer: 4096, 64K, 1M, 1G")->delimiter(',');
  command->add_option("--leaves", options->leaves, "leaves of the tree (default: one a worker)")
      ->check(CLI::PositiveNumber);
  command->add_flag(
      "--in-use", options->in_use,
      "every rank writes its data before each call and reads the sum after it; the time is of all three");
  command->add_flag("--floor", options->floor,
                    "also measure the least that any sum in place over shared memory must move");
  command->add_option("--order", options->order, "canonical, or fast: outside the promise, for comparison");
  command->add_option("--seconds", options->seconds, "time to measure each size for")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--servers", options->ranks.servers,
                   "Reduction Servers (lockstep serve-reduce) that the sums go through")
      ->check(CLI::Range(1, 256));
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options] { run_bench_allreduce(*options); });
}

}  // namespace lockstep
