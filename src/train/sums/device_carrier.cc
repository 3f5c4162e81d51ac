#include <algorithm>

#include "train/sums/device_sums.h"
#include "train/sums/round_carrier.h"

namespace lockstep {
namespace {

// A bucket of a leaf is copied to where neighbours reach it, since its own memory is soon lent out; owners
// add up their pieces from there and from what other hosts send (train/sums/device_sums.h). There are two
// such places in turns: when the group meets for the next bucket, everybody has read this one.
class DeviceCarrier : public RoundCarrier {
 public:
  DeviceCarrier(CarriedPieces pieces, const DeviceReach& reach)
      : made_of_(std::move(pieces)), reach_(reach), brought_(made_of_.group, made_of_.backend, reach) {
    int64_t most = 0;
    for (const Slice& bucket : made_of_.buckets) most = std::max(most, bucket.size());
    sent_bytes_ = std::max<int64_t>(most * element(), element());
    peers_ = reach.open({reach.allocate(sent_bytes_), reach.allocate(sent_bytes_)});
    int64_t offset = 0;
    for (const Slice& piece : made_of_.pieces) {
      offsets_.push_back(offset);
      offset += piece.size();
    }
    for (int64_t slot = 0; slot < kept_sums(made_of_.range, made_of_.leaves, workers()); ++slot)
      sums_.push_back(made_of_.backend.allocate(offset * element()));
  }

  Group::Ticket start(int64_t round, int64_t bucket, const LeafStack& stack, const void* from,
                      const std::string& label) override {
    const size_t place = next_++ % 2;
    Meeting meeting{.label = label};
    if (from != nullptr)
      meeting.before = [this, place, bucket, from, ready = made_of_.backend.compute().record()] {
        const int64_t count = made_of_.buckets[static_cast<size_t>(bucket)].size();
        stream().wait(ready);
        stream().copy(peers_->at(made_of_.group.rank(), place), from, count * element());
        stream().synchronize();
      };
    meeting.after = [this, place, &stack, round, bucket] { add_up(place, stack, round, bucket); };
    Group::Ticket ticket = made_of_.group.start_meeting(meeting);
    if (!reach_.sends()) return ticket;
    return made_of_.group.start_meeting({.label = label + ", sums", .after = [this] { reach_.confirm(); }});
  }
  void* root(int64_t owned) const override { return sum(0, owned); }
  void* held(int64_t slot, int64_t owned) const override { return sum(static_cast<size_t>(slot), owned); }
  bool holds_in_host_memory() const override { return false; }
  int64_t bytes() const override {
    int64_t bytes = 2 * sent_bytes_ + brought_.bytes();
    for (const auto& sum : sums_) bytes += sum->bytes();
    return bytes;
  }

 private:
  int64_t element() const { return made_of_.element(); }
  int workers() const { return made_of_.group.size(); }
  Stream& stream() const { return made_of_.backend.stream(StreamKind::kCommunication); }
  std::byte* sum(size_t slot, int64_t owned) const {
    return static_cast<std::byte*>(sums_[slot]->data()) + owned * element();
  }

  // What every slot holds after the round, from what slots held before it and the leaves of all workers.
  void add_up(size_t place, const LeafStack& before, int64_t round, int64_t bucket) {
    const auto index = static_cast<size_t>(bucket);
    const Slice& mine = made_of_.pieces[index];
    if (mine.size() == 0 && !reach_.sends()) return;  // else others need what is here
    const std::vector<DeviceSums::Part> parts = brought_.bring(
        made_of_.dtype, shares_in(round, index), [&](int rank, size_t) { return peers_->at(rank, place); });
    if (mine.size() == 0) return;
    std::vector<SumSources> slots;
    for (size_t slot = 0; slot < before.subtrees().size(); ++slot)
      slots.push_back({{sum(slot, offsets_[index])}, {0}});
    LeafStack stack = before;
    for (const DeviceSums::Part& part : parts) {
      slots.push_back({{part.at}, {0}});
      stack.push(part.leaves, [&](int64_t into, int64_t) {
        SumSources& left = slots[static_cast<size_t>(into)];
        const SumSources& right = slots.back();
        left.addresses.insert(left.addresses.end(), right.addresses.begin(), right.addresses.end());
        left.merges.insert(left.merges.end(), right.merges.begin(), right.merges.end());
        ++left.merges.back();
        slots.pop_back();
      });
    }
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      void* const into = sum(slot, offsets_[index]);
      if (slots[slot].addresses.size() == 1 && slots[slot].addresses[0] == into) continue;
      reach_.sharing().sum(StreamKind::kCommunication, made_of_.dtype, slots[slot], into, mine.size());
    }
    stream().synchronize();
  }

  // A leaf of each worker, as far as there are some.
  DeviceSums::Shares shares_in(int64_t round, size_t bucket) const {
    DeviceSums::Shares shares{.leaves = made_of_.leaves,
                              .parts = leaves_in(made_of_.range, round, workers())};
    for (int rank = 0; rank < workers(); ++rank)
      shares.slices.push_back(slice_of(made_of_.buckets[bucket].size(), workers(), rank));
    return shares;
  }

  CarriedPieces made_of_;
  const DeviceReach& reach_;
  DeviceSums brought_;
  int64_t sent_bytes_ = 0;
  std::vector<int64_t> offsets_;               // of pieces, among those that this worker owns
  std::vector<std::unique_ptr<Buffer>> sums_;  // kept between rounds, per slot
  std::unique_ptr<PeerBuffers> peers_;         // the two places of everybody
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<RoundCarrier> make_device_carrier(CarriedPieces pieces, const DeviceReach& reach) {
  return std::make_unique<DeviceCarrier>(std::move(pieces), reach);
}

}  // namespace lockstep
