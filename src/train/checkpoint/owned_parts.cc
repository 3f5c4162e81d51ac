#include "train/checkpoint/owned_parts.h"

#include <algorithm>
#include <deque>

#include "base/durable_file.h"
#include "base/error.h"

namespace lockstep {
namespace {

// The elements, all of which are here.
void download(const StateTensor& tensor, Slice elements, Backend& backend, std::span<std::byte> into) {
  const int64_t element = size_of(tensor.dtype);
  if (tensor.is_whole())
    return backend.download(into.data(), static_cast<std::byte*>(tensor.data) + elements.begin * element,
                            static_cast<int64_t>(into.size()));
  int64_t here = 0;
  for_pieces(tensor, elements, [&](Slice part, const std::byte* own) {
    backend.download(into.data() + (part.begin - elements.begin) * element, own, part.size() * element);
    here += part.size();
  });
  LOCKSTEP_CHECK(here == elements.size(), "of {} elements of {} only {} are here", elements.size(),
                 tensor.name, here);
}

}  // namespace

std::vector<Slice> written_by(const TrainState& state, const StateTensor& tensor, int rank, int workers) {
  // Of what several hold alike, each writes a part.
  const auto parts_of = [](const std::vector<Slice>& held, int holders, int index) {
    std::vector<Slice> parts;
    for (const Slice& slice : held) {
      const Slice part = slice_of(slice.size(), holders, index);
      if (part.size() > 0) parts.push_back({slice.begin + part.begin, slice.begin + part.end});
    }
    return parts;
  };
  if (tensor.is_whole()) return parts_of({{0, tensor.shape.numel()}}, workers, rank);
  const int owners = state.ownership().is_split() ? state.ownership().workers() : workers;
  const bool in_groups = owners < workers && !state.holders().is_split();
  if (!in_groups) return state.held_by(rank, tensor);
  return parts_of(state.held_by(rank % owners, tensor), workers / owners, rank / owners);
}

PartSums write_parts(const std::string& folder, const std::vector<StateFile>& files, const PartWriter& writer,
                     const std::atomic<bool>& stop) {
  // Before anything is written: what this finds is what the leader has made just now.
  std::deque<FilePart> open;
  for (const StateFile& file : files) open.emplace_back(folder + "/" + file.name);
  PartSums sums;
  for (size_t f = 0; f < files.size(); ++f) {
    Fold fold;
    for (size_t t = 0; t < files[f].tensors.size(); ++t) {
      const StateTensor& tensor = *files[f].tensors[t];
      const int64_t element = size_of(tensor.dtype);
      const int64_t most = static_cast<int64_t>(writer.staging.size()) / element;
      for (const Slice& slice : written_by(writer.state, tensor, writer.rank, writer.workers))
        for (int64_t begin = slice.begin; begin < slice.end; begin += most) {
          if (stop) return {};
          const Slice part{begin, std::min(slice.end, begin + most)};
          const auto bytes = writer.staging.first(static_cast<size_t>(part.size() * element));
          download(tensor, part, writer.backend, bytes);
          fold.update(bytes);
          open[f].write(files[f].header.tensors[t].begin + begin * element, bytes);
        }
    }
    sums.push_back(fold.value());
  }
  for (FilePart& file : open) file.finish(writer.durable);
  return sums;
}

OwnedParts::OwnedParts(const TrainState& state, std::vector<StateFile> files, int workers, WriteAll write_all)
    : state_(state), files_(std::move(files)), workers_(workers), write_all_(std::move(write_all)) {}

void OwnedParts::fill(const std::string& folder) {
  written_ = write_all_(folder);
  found_.assign(static_cast<size_t>(workers_), Fold());
}

std::vector<OwnedParts::Turn> OwnedParts::turns_of(const StateTensor& tensor) const {
  std::vector<Turn> turns;
  for (int rank = 0; rank < workers_; ++rank)
    for (const Slice& slice : written_by(state_, tensor, rank, workers_)) turns.push_back({slice, rank});
  std::ranges::sort(turns, {}, [](const Turn& turn) { return turn.elements.begin; });
  int64_t end = 0;
  for (const Turn& turn : turns) {
    LOCKSTEP_CHECK(turn.elements.begin == end, "element {} of {} has not one worker that writes it", end,
                   tensor.name);
    end = turn.elements.end;
  }
  LOCKSTEP_CHECK(end == tensor.shape.numel(), "element {} of {} has no worker that writes it", end,
                 tensor.name);
  return turns;
}

void OwnedParts::check(size_t file, size_t tensor, int64_t first, std::span<const std::byte> bytes) {
  const StateTensor& read = *files_[file].tensors[tensor];
  const int64_t element = size_of(read.dtype);
  if (first == 0) {
    turns_ = turns_of(read);
    turn_ = 0;
  }
  int64_t at = first;
  while (!bytes.empty()) {
    const Turn& turn = turns_[turn_];
    const auto part = bytes.first(
        static_cast<size_t>(std::min(static_cast<int64_t>(bytes.size()), turn.elements.end * element - at)));
    found_[static_cast<size_t>(turn.rank)].update(part);
    bytes = bytes.subspan(part.size());
    at += static_cast<int64_t>(part.size());
    if (at == turn.elements.end * element) ++turn_;
  }
}

void OwnedParts::check_end(size_t file, const std::string& path) {
  for (int rank = 0; rank < workers_; ++rank) {
    Fold& found = found_[static_cast<size_t>(rank)];
    if (found.value() != written_[static_cast<size_t>(rank)][file])
      throw UserError(
          "{} does not hold what worker {} wrote into it: its file system does not keep what several hosts "
          "write into one file; say checkpoint.writers: leader",
          path, rank);
    found = Fold();
  }
}

}  // namespace lockstep
