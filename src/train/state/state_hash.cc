#include "train/state/state_hash.h"

#include <algorithm>
#include <memory>
#include <span>

#include "base/convert.h"
#include "base/sha256.h"
#include "base/thread_pool.h"

namespace lockstep {
namespace {

// Pieces that are brought together: of what is in the memory of a device, and of what other workers hold.
constexpr size_t kPiecesOfDevice = 32, kPiecesOfOthers = 4;
// Values that are widened before they are hashed: few enough to stay in a cache.
constexpr int64_t kWidened = 1 << 13;

struct HashedPiece {
  const StateTensor* tensor = nullptr;
  int64_t first = 0, bytes = 0;  // of the tensor's bytes
  const std::byte* at = nullptr;
};

std::vector<HashedPiece> cut(const std::vector<const StateTensor*>& tensors) {
  std::vector<HashedPiece> pieces;
  for (const StateTensor* tensor : tensors) {
    const int64_t most = kHashedElements * size_of(tensor->dtype);
    for (int64_t first = 0; first < tensor->bytes(); first += most)
      pieces.push_back({tensor, first, std::min(most, tensor->bytes() - first)});
  }
  return pieces;
}

std::string digest_of(const HashedPiece& piece) {
  const DType dtype = piece.tensor->dtype;
  Sha256 hash;
  if (dtype != DType::kBF16 && dtype != DType::kF16) {
    hash.update(std::span(piece.at, static_cast<size_t>(piece.bytes)));
    return hash.finish();
  }
  const int64_t count = piece.bytes / size_of(dtype);
  std::vector<float> values(static_cast<size_t>(std::min(count, kWidened)));
  for (int64_t first = 0; first < count; first += kWidened) {
    const auto part = std::span(values).first(static_cast<size_t>(std::min(kWidened, count - first)));
    convert_elements(dtype, piece.at + first * size_of(dtype), DType::kF32, part.data(),
                     static_cast<int64_t>(part.size()));
    hash.update(std::as_bytes(part));
  }
  return hash.finish();
}

// Brings pieces to one place in the host's memory, those that follow each other on the device in one copy.
void bring(Backend& backend, std::span<HashedPiece> pieces, std::byte* staged,
           const SplitTensors::Read& split) {
  for (size_t i = 0; i < pieces.size();) {
    HashedPiece& first = pieces[i];
    int64_t bytes = 0;
    size_t end = i;
    for (; end < pieces.size() && pieces[end].tensor == first.tensor; ++end) {
      pieces[end].at = staged + bytes;
      bytes += pieces[end].bytes;
      if (!first.tensor->is_whole())
        split(*first.tensor, pieces[end].first,
              {staged + bytes - pieces[end].bytes, static_cast<size_t>(pieces[end].bytes)});
    }
    if (first.tensor->is_whole())
      backend.download(staged, static_cast<const std::byte*>(first.tensor->data) + first.first, bytes);
    staged += bytes;
    i = end;
  }
}

}  // namespace

std::string sha256_of(Backend& backend, std::vector<const StateTensor*> tensors,
                      const SplitTensors::Read& split) {
  std::ranges::sort(tensors, {}, &StateTensor::name);
  std::vector<HashedPiece> pieces = cut(tensors);
  std::vector<std::string> digests(pieces.size());
  const bool addressable = backend.memory() == MemoryKind::kHost;
  const auto in_place = [&](const HashedPiece& piece) { return addressable && piece.tensor->is_whole(); };
  ThreadPool pool(backend.host_threads());
  const size_t at_once =
      addressable ? std::min(kPiecesOfOthers, static_cast<size_t>(backend.host_threads())) : kPiecesOfDevice;
  std::unique_ptr<Buffer> staging;
  for (size_t begin = 0; begin < pieces.size();) {
    // Of what lies here as it is, as much as there is; of the rest, what the staging memory holds.
    const bool here = in_place(pieces[begin]);
    size_t end = begin;
    while (end < pieces.size() && in_place(pieces[end]) == here && (here || end - begin < at_once)) ++end;
    const auto batch = std::span(pieces).subspan(begin, end - begin);
    if (here) {
      for (HashedPiece& piece : batch)
        piece.at = static_cast<const std::byte*>(piece.tensor->data) + piece.first;
    } else {
      int64_t bytes = 0;
      for (const HashedPiece& piece : batch) bytes += piece.bytes;
      if (staging == nullptr || staging->bytes() < bytes)
        staging = backend.allocate(bytes, MemoryKind::kPinned);
      bring(backend, batch, static_cast<std::byte*>(staging->data()), split);
    }
    pool.run(static_cast<int64_t>(batch.size()), [&](int64_t task) {
      const auto i = static_cast<size_t>(task);
      digests[begin + i] = digest_of(batch[i]);
    });
    begin = end;
  }
  Sha256 whole;
  size_t next = 0;
  for (const StateTensor* tensor : tensors) {
    whole.update(tensor->name);
    whole.update(name_of(tensor->dtype));
    whole.update(to_string(tensor->shape));
    for (; next < pieces.size() && pieces[next].tensor == tensor; ++next) whole.update(digests[next]);
  }
  return whole.finish();
}

std::string sha256_of(Backend& backend, const std::vector<StateTensor>& tensors,
                      const SplitTensors::Read& split) {
  std::vector<const StateTensor*> known;
  for (const StateTensor& tensor : tensors)
    if (tensor.is_whole() || split) known.push_back(&tensor);
  return sha256_of(backend, std::move(known), split);
}

}  // namespace lockstep
