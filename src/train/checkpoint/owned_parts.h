// The files of a checkpoint that all workers write together: every one the elements that it owns, into files
// that the leader has made, at the bytes where the leader alone would have written them.
//
// SHA-256 of a file needs its bytes in order, and owners have slices of a bucket each: so the leader reads
// the files when they are written, in the background, and hashes what it finds. That it is what the owners
// had in memory is seen by a checksum for each worker and file, of the bytes that it wrote in their order
// (docs/decisions/0018-owners-write-the-leader-reads.md).
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "safetensors/fold.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/checkpoint/state_files.h"

namespace lockstep {

// What of a tensor a worker writes: what it owns; of what several have, all of them or the owners of a slice
// in all groups, a part.
std::vector<Slice> written_by(const TrainState& state, const StateTensor& tensor, int rank, int workers);

// One of those who write.
struct PartWriter {
  const TrainState& state;
  Backend& backend;
  int rank = 0;
  int workers = 1;
  std::span<std::byte> staging;  // through which its elements go
  bool durable = true;           // sync what was written
};
// By file, of the bytes that a worker wrote.
using PartSums = std::vector<uint64_t>;
// Nothing where it was stopped before its end.
PartSums write_parts(const std::string& folder, const std::vector<StateFile>& files, const PartWriter& writer,
                     const std::atomic<bool>& stop);

// Fills files by having all workers write, and compares what is read of them.
class OwnedParts : public TensorFiller {
 public:
  // What the workers wrote, by rank. Throws UserError that names the one that could not.
  using WriteAll = std::function<std::vector<PartSums>(const std::string& folder)>;

  OwnedParts(const TrainState& state, std::vector<StateFile> files, int workers, WriteAll write_all);

  void fill(const std::string& folder) override;
  void check(size_t file, size_t tensor, int64_t first, std::span<const std::byte> bytes) override;
  void check_end(size_t file, const std::string& path) override;

 private:
  struct Turn {
    Slice elements;
    int rank = 0;
  };
  // Who has written what of a tensor, in order.
  std::vector<Turn> turns_of(const StateTensor& tensor) const;

  const TrainState& state_;
  std::vector<StateFile> files_;
  int workers_;
  WriteAll write_all_;
  std::vector<PartSums> written_;
  // Of the file and the tensor that are being read.
  std::vector<Fold> found_;
  std::vector<Turn> turns_;
  size_t turn_ = 0;
};

}  // namespace lockstep
