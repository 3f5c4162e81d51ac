#include "run/checkpoint_writers.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <random>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/training_checkpoints.h"

namespace lockstep {
namespace {

constexpr int kLeader = 0;
constexpr const char* kAbout = "the files of a checkpoint";
// Shorter than half of any deadline that a job may have.
constexpr std::chrono::milliseconds kBetweenWords{200};

std::string random_text() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", random());
  return text;
}

std::string name_in_folder(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Two processes that find the same here write into one page cache: what one of them syncs is what all have
// written. A device's number means something under one kernel only, of which this is one start.
std::string inode_text(const FileDescriptor& file) {
  std::ifstream source("/proc/sys/kernel/random/boot_id");
  std::string boot;
  source >> boot;
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return "";
  return fmt::format("{} {} {}", boot, facts.st_dev, facts.st_ino);
}

}  // namespace

struct CheckpointWriters::Request {
  std::string folder;  // in the run's folder of checkpoints
  std::set<std::string> left_out;
  bool weights_alone = false;
};

// An all_gather deals out blocks of this size.
struct CheckpointWriters::Told {
  enum State : int64_t { kWorking, kDone, kFailed };

  int64_t state = kWorking;
  std::array<uint64_t, 4> sums{};  // of the files of a checkpoint
  std::array<char, kSliceBlock - 5 * sizeof(int64_t)> text{};

  Told() = default;
  Told(State state, const std::string& says) : state(state) { says.copy(text.data(), text.size() - 1); }
};

CheckpointWriters::CheckpointWriters(Workers& workers, TrainStep& train, std::string folder)
    : workers_(workers), group_(*workers.group()), train_(train), folder_(std::move(folder)) {
  static_assert(sizeof(Told) == kSliceBlock);
  workers.serve_with(Workers::Service::kCheckpoint, [this] { serve(); });
}

std::string CheckpointWriters::broadcast(std::string text) {
  auto bytes = static_cast<int64_t>(text.size());
  group_.broadcast(std::as_writable_bytes(std::span(&bytes, 1)), kLeader, kAbout);
  text.resize(static_cast<size_t>(bytes));
  group_.broadcast(std::as_writable_bytes(std::span(text)), kLeader, kAbout);
  return text;
}

std::vector<CheckpointWriters::Told> CheckpointWriters::tell(const Told& own) {
  std::vector<Told> all(static_cast<size_t>(group_.size()));
  all[static_cast<size_t>(group_.rank())] = own;
  group_.all_gather({.data = all.data(),
                     .count = static_cast<int64_t>(all.size() * sizeof(Told)),
                     .element_bytes = 1,
                     .label = kAbout});
  return all;
}

void CheckpointWriters::serve() {
  const auto json = nlohmann::json::parse(broadcast({}));
  if (json.contains("marker")) {
    look(json.at("marker").get<std::string>(), json.at("content").get<std::string>());
    return;
  }
  std::vector<std::byte> staging(static_cast<size_t>(kCheckpointStaging));
  write_together({.folder = json.at("folder").get<std::string>(),
                  .left_out = json.at("left_out").get<std::set<std::string>>(),
                  .weights_alone = json.at("weights_alone").get<bool>()},
                 staging);
}

std::string CheckpointWriters::find_strangers() {
  const std::string marker = marker_name(folder_), content = random_text();
  FileFrame file(marker, content, static_cast<int64_t>(content.size()));
  file.sync();
  sync_folder(folder_);
  workers_.call(Workers::Service::kCheckpoint, kAbout);
  const std::string name = name_in_folder(marker);
  broadcast(nlohmann::json({{"marker", name}, {"content", content}}).dump());
  const std::vector<Told> all = look(name, content);
  ::unlink(marker.c_str());
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].state == Told::kFailed) return fmt::format("worker {} {}", rank, all[rank].text.data());
  return "";
}

std::vector<CheckpointWriters::Told> CheckpointWriters::look(const std::string& marker,
                                                             const std::string& content) {
  const std::string path = folder_ + "/" + marker;
  const auto found = [&]() -> Told {
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (file.number() < 0)
      return {Told::kFailed,
              fmt::format("does not find worker 0's files in {}: {}", folder_, std::strerror(errno))};
    std::string read(content.size(), ' ');
    if (::pread(file.number(), read.data(), read.size(), 0) != static_cast<ssize_t>(read.size()) ||
        read != content)
      return {Told::kFailed, fmt::format("reads something else than worker 0 wrote in {}", folder_)};
    return {Told::kDone, inode_text(file)};
  };
  std::vector<Told> all = tell(found());
  const Told& own = all[static_cast<size_t>(group_.rank())];
  durable_ = own.text[0] == 0 || own.text != all[kLeader].text;
  return all;
}

CheckpointWriters::Written CheckpointWriters::write(const std::string& folder,
                                                    const std::set<std::string>& left_out, bool weights_alone,
                                                    std::span<std::byte> staging) {
  const Request request{name_in_folder(folder), left_out, weights_alone};
  workers_.call(Workers::Service::kCheckpoint, kAbout);
  broadcast(
      nlohmann::json({{"folder", request.folder}, {"left_out", left_out}, {"weights_alone", weights_alone}})
          .dump());
  const std::vector<Told> all = write_together(request, staging);
  Written written;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].state == Told::kFailed && written.error.empty())
      written.error = fmt::format("worker {} {}", rank, all[rank].text.data());
    written.sums.emplace_back(all[rank].sums.begin(), all[rank].sums.end());
  }
  return written;
}

std::vector<CheckpointWriters::Told> CheckpointWriters::write_together(const Request& request,
                                                                       std::span<std::byte> staging) {
  // Rows that are behind are caught up here, on the leader before it has called.
  const TrainState& state = workers_.leads() ? train_.state_as_it_lies() : train_.state();
  std::atomic<bool> stop = false;
  std::future<Told> writing = std::async(std::launch::async, [&]() -> Told {
    try {
      const PartSums sums = write_parts(folder_ + "/" + request.folder,
                                        state_files(state, request.left_out, request.weights_alone),
                                        {.state = state,
                                         .backend = train_.backend(),
                                         .rank = group_.rank(),
                                         .workers = group_.size(),
                                         .staging = staging,
                                         .durable = durable_ && !workers_.leads()},
                                        stop);
      Told done(Told::kDone, "");
      LOCKSTEP_CHECK(sums.size() <= done.sums.size(), "a checkpoint of {} files", sums.size());
      std::ranges::copy(sums, done.sums.begin());
      return done;
    } catch (const std::exception& error) {
      return {Told::kFailed, error.what()};
    }
  });
  Told own;
  const auto is = [](Told::State state) { return [state](const Told& one) { return one.state == state; }; };
  try {
    for (;;) {
      if (own.state == Told::kWorking && writing.wait_for(kBetweenWords) == std::future_status::ready)
        own = writing.get();
      const std::vector<Told> all = tell(own);
      if (std::ranges::none_of(all, is(Told::kWorking))) return all;
      if (std::ranges::any_of(all, is(Told::kFailed))) stop = true;
    }
  } catch (...) {
    stop = true;
    throw;  // once the thread has ended, which the future waits for
  }
}

}  // namespace lockstep
