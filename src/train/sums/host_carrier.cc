#include <algorithm>
#include <cstring>

#include "comm/simd/sum_loops.h"
#include "train/state/group_memory.h"
#include "train/sums/round_carrier.h"

namespace lockstep {
namespace {

// Elements that are added up together: all sums of them stay in the nearest cache.
constexpr int64_t kChunk = 2048;

int64_t piece_elements(int64_t count, int64_t workers) {
  const int64_t blocks = (count + kFlatBlock - 1) / kFlatBlock;
  return (blocks + workers - 1) / workers * kFlatBlock;
}

void add(DType dtype, std::byte* into, const std::byte* term, int64_t count) {
  const comm::SumLoops& loops = comm::sum_loops();
  if (dtype == DType::kF32) {
    auto* const sum = reinterpret_cast<float*>(into);
    return loops.add2_f32(sum, sum, reinterpret_cast<const float*>(term), count);
  }
  auto* const sum = reinterpret_cast<uint16_t*>(into);
  loops.add2_bf16(sum, sum, reinterpret_cast<const uint16_t*>(term), count);
}

class HostCarrier : public RoundCarrier {
 public:
  explicit HostCarrier(CarriedPieces pieces) : made_of_(std::move(pieces)) {
    int64_t most = 0, offset = 0;
    for (const Slice& bucket : made_of_.buckets) most = std::max(most, piece_bytes(bucket));
    send_ = StagingMemory(made_of_.group, made_of_.backend, most * workers());
    receive_ = StagingMemory(made_of_.group, made_of_.backend, send_.bytes());
    for (const Slice& piece : made_of_.pieces) {
      offsets_.push_back(offset);
      offset += piece.size();
    }
    const int64_t bytes = offset * element();
    const bool on_device = backend().memory() == MemoryKind::kDevice;
    const bool reached = made_of_.replicas != nullptr && !on_device;
    for (int64_t slot = 0; slot < kept_sums(made_of_.range, made_of_.leaves, workers()); ++slot)
      sums_.push_back(reached ? peer_memory(*made_of_.replicas, bytes)
                              : backend().allocate(bytes, MemoryKind::kPinned));
    scratch_.resize(static_cast<size_t>(stack_depth(made_of_.range, made_of_.leaves) * kChunk * element()));
    if (on_device) root_ = backend().allocate(bytes);
  }

  // The group runs one collective at a time, so that all of them can pass through the same memory. Without a
  // leaf what is sent means nothing, and nobody looks at it.
  Group::Ticket start(int64_t round, int64_t bucket, const LeafStack& stack, const void* from,
                      const std::string& label) override {
    const auto all =
        static_cast<size_t>(piece_bytes(made_of_.buckets[static_cast<size_t>(bucket)]) * workers());
    PieceExchange exchange{.send = {send_.data(), all}, .receive = {receive_.data(), all}, .label = label};
    if (from != nullptr)
      exchange.before = [this, bucket, from, ready = backend().compute().record()] {
        backend().stream(StreamKind::kCommunication).wait(ready);
        pack(bucket, from);
      };
    exchange.after = [this, &stack, round, bucket] { add_up(stack, round, bucket); };
    return made_of_.group.start_exchange(exchange);
  }
  void finish() override {
    if (root_) backend().compute().copy(root_->data(), sums_[0]->data(), root_->bytes());
  }
  void* root(int64_t owned) const override {
    Buffer& root = root_ ? *root_ : *sums_[0];
    return static_cast<char*>(root.data()) + owned * element();
  }
  void* held(int64_t slot, int64_t owned) const override {
    return static_cast<char*>(sums_[static_cast<size_t>(slot)]->data()) + owned * element();
  }
  bool holds_in_host_memory() const override { return true; }
  int64_t bytes() const override {
    int64_t bytes = send_.bytes() + receive_.bytes() + (root_ ? root_->bytes() : 0);
    for (const auto& sum : sums_) bytes += sum->bytes();
    return bytes;
  }

 private:
  Backend& backend() const { return made_of_.backend; }
  int64_t element() const { return made_of_.element(); }
  int workers() const { return made_of_.group.size(); }
  int64_t piece_bytes(const Slice& bucket) const {
    return piece_elements(bucket.size(), workers()) * element();
  }

  void pack(int64_t bucket, const void* from) {
    const Slice& all = made_of_.buckets[static_cast<size_t>(bucket)];
    Stream& stream = backend().stream(StreamKind::kCommunication);
    for (int rank = 0; rank < workers(); ++rank) {
      const Slice slice = slice_of(all.size(), workers(), rank);
      if (slice.size() == 0) continue;
      stream.copy(send_.data() + rank * piece_bytes(all),
                  static_cast<const char*>(from) + slice.begin * element(), slice.size() * element());
    }
    stream.synchronize();
  }

  void add_up(const LeafStack& before, int64_t round, int64_t bucket) {
    const auto index = static_cast<size_t>(bucket);
    const Slice& mine = made_of_.pieces[index];
    const int64_t piece = piece_bytes(made_of_.buckets[index]);
    const int64_t first = made_of_.range.begin + round * workers();
    for (int64_t done = 0; done < mine.size(); done += kChunk) {
      const int64_t count = std::min(kChunk, mine.size() - done);
      const int64_t offset = offsets_[index] + done;
      LeafStack stack = before;
      for (int64_t leaf = first; leaf < std::min(made_of_.range.end, first + workers()); ++leaf) {
        const std::byte* const term = receive_.data() + (leaf - first) * piece + done * element();
        std::memcpy(sum_in_round(stack.next_slot(), offset), term, static_cast<size_t>(count * element()));
        stack.push({leaf, leaf + 1}, [&](int64_t into, int64_t from) {
          add(made_of_.dtype, sum_in_round(into, offset), sum_in_round(from, offset), count);
        });
      }
    }
  }

  // Within a round there are more of them than are kept.
  std::byte* sum_in_round(int64_t slot, int64_t owned) {
    const auto kept = static_cast<int64_t>(sums_.size());
    if (slot >= kept) return scratch_.data() + (slot - kept) * kChunk * element();
    return static_cast<std::byte*>(sums_[static_cast<size_t>(slot)]->data()) + owned * element();
  }

  CarriedPieces made_of_;
  std::vector<int64_t> offsets_;               // of pieces, among those that this worker owns
  std::vector<std::unique_ptr<Buffer>> sums_;  // kept between rounds, per slot
  std::vector<std::byte> scratch_;             // a chunk of those that are not
  std::unique_ptr<Buffer> root_;               // on a device with memory of its own
  StagingMemory send_, receive_;               // one piece of a bucket for each worker, and from each
};

}  // namespace

int64_t CarriedPieces::owned() const {
  int64_t elements = 0;
  for (const Slice& piece : pieces) elements += piece.size();
  return elements;
}

std::vector<std::vector<LeafRange>> leaves_in(LeafRange range, int64_t round, int64_t workers) {
  std::vector<std::vector<LeafRange>> leaves(static_cast<size_t>(workers));
  const int64_t first = range.begin + round * workers;
  for (int64_t leaf = first; leaf < std::min(range.end, first + workers); ++leaf)
    leaves[static_cast<size_t>(leaf - first)] = {{leaf, leaf + 1}};
  return leaves;
}

int64_t kept_sums(LeafRange range, int64_t leaves, int64_t workers) {
  LeafStack stack(leaves);
  int64_t most = 1;
  for (int64_t leaf = range.begin; leaf < range.end; ++leaf) {
    stack.push({leaf, leaf + 1}, [](int64_t, int64_t) {});
    const bool ends_round = (leaf + 1 - range.begin) % workers == 0 || leaf + 1 == range.end;
    if (ends_round) most = std::max(most, stack.next_slot());
  }
  return most;
}

int64_t carried_bytes(const Buckets& buckets, DType dtype, int64_t workers) {
  int64_t most = 0;
  for (int64_t b = 0; b < buckets.count(); ++b)
    most = std::max(most, piece_elements(buckets[b].size(), workers));
  return 2 * most * workers * size_of(dtype);
}

std::unique_ptr<RoundCarrier> make_host_carrier(CarriedPieces pieces) {
  return std::make_unique<HostCarrier>(std::move(pieces));
}

}  // namespace lockstep
