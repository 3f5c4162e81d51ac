#include "train/state/initial_params.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "train/update/optimizer.h"

namespace lockstep {
namespace {

// Host memory for these at a time: a copy of the largest tensor would be the peak of the whole run.
constexpr int64_t kElements = 1 << 14;
constexpr size_t kAtOnce = 64;

struct Piece {
  const ParamInit* init = nullptr;
  char* device = nullptr;
  DType dtype = DType::kF32;
  int64_t first = 0, count = 0;
};

// What the device does not draw itself.
std::vector<Piece> cut(Backend& backend, const std::vector<StateTensor>& params,
                       const std::vector<ParamInit>& inits, uint64_t seed) {
  std::vector<Piece> pieces;
  for (const StateTensor& tensor : params) {
    const ParamInit& init = init_of(inits, tensor.name);
    if (init.given) continue;
    for (const StatePiece& own : pieces_of(tensor)) {
      if (backend.draw(random_fill(init, seed), tensor.dtype, own.first, own.data, own.count)) continue;
      for (int64_t done = 0; done < own.count; done += kElements)
        pieces.push_back({&init, static_cast<char*>(own.data) + done * size_of(tensor.dtype), tensor.dtype,
                          own.first + done, std::min(kElements, own.count - done)});
    }
  }
  return pieces;
}

// Values are drawn as f32 and rounded to the type they are stored in, where they stand.
void round_in_place(DType dtype, float* values, int64_t count) {
  if (dtype == DType::kF32) return;
  for (int64_t i = 0; i < count; ++i) write_element(dtype, values, i, static_cast<double>(values[i]));
}

}  // namespace

void draw_params(Backend& backend, const std::vector<StateTensor>& params,
                 const std::vector<ParamInit>& inits, uint64_t seed) {
  const std::vector<Piece> pieces = cut(backend, params, inits, seed);
  if (pieces.empty()) return;
  ThreadPool pool(backend.host_threads());
  std::vector<float> values(std::min(pieces.size(), kAtOnce) * kElements);
  const auto place = [&](size_t i) { return values.data() + i % kAtOnce * kElements; };
  // Pieces that follow each other here and on the device go in one copy, which costs a device its latency.
  // Returns the piece after them.
  const auto upload_run = [&](size_t first, size_t end) {
    const auto bytes_of = [&](size_t i) { return pieces[i].count * size_of(pieces[i].dtype); };
    int64_t bytes = bytes_of(first);
    size_t next = first + 1;
    for (; next < end && bytes_of(next - 1) == kElements * int64_t{sizeof(float)} &&
           pieces[next].device == pieces[first].device + bytes;
         ++next)
      bytes += bytes_of(next);
    backend.upload(pieces[first].device, place(first), bytes);
    return next;
  };
  for (size_t begin = 0; begin < pieces.size(); begin += kAtOnce) {
    const size_t end = std::min(pieces.size(), begin + kAtOnce);
    pool.run(static_cast<int64_t>(end - begin), [&](int64_t task) {
      const size_t i = begin + static_cast<size_t>(task);
      init_param(*pieces[i].init, seed, pieces[i].first, {place(i), static_cast<size_t>(pieces[i].count)});
      round_in_place(pieces[i].dtype, place(i), pieces[i].count);
    });
    for (size_t i = begin; i < end;) i = upload_run(i, end);
  }
}

}  // namespace lockstep
