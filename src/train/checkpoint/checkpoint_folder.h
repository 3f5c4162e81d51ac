// The checkpoints of a run and their names:
//
//   <run>/checkpoint-<step>/              complete: everything in it was on the disk before it got this name
//   <run>/checkpoint-<step>.tmp-<pid>-*/  being written or deleted, or left behind by a process that was
//   killed <run>/best -> checkpoint-<step>       the best one so far
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct CheckpointInfo {
  int64_t step = 0;
  std::string path;
  bool best = false;
};

std::string checkpoint_path(const std::string& run_dir, int64_t step);

// Complete checkpoints by rising step; none where there is no such folder.
std::vector<CheckpointInfo> list_checkpoints(const std::string& run_dir);
std::optional<CheckpointInfo> latest_checkpoint(const std::string& run_dir);
std::optional<CheckpointInfo> best_checkpoint(const std::string& run_dir);

// For the one process that writes: see CheckpointWriter, which takes the lock that these need.
void mark_best_checkpoint(const std::string& run_dir, int64_t step);
void unmark_best_checkpoint(const std::string& run_dir);
// Under a temporary name first, so that a half-deleted one is never taken for complete.
void remove_checkpoint(const CheckpointInfo& checkpoint);
void remove_temporary_folders(const std::string& run_dir);
// No two calls give the same one, in whatever process: who still writes for a process that was killed does
// not find what a later one makes.
std::string temporary_name(const std::string& path);
// Of a file that says which folder this is, as long as somebody asks.
std::string marker_name(const std::string& run_dir);

}  // namespace lockstep
