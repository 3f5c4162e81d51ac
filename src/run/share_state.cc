#include "run/share_state.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

constexpr int kLeader = 0;
constexpr int64_t kPiece = 4 << 20;  // bytes

// Tensors go through one buffer that the peers can reach, as many at a time as fit.
class TensorStream {
 public:
  TensorStream(Group& group, Backend& backend)
      : group_(group), backend_(backend), buffer_(group.allocate(kPiece)) {}

  void add(const StateTensor& tensor) {
    for (int64_t done = 0; done < tensor.bytes();) {
      const int64_t bytes = std::min(tensor.bytes() - done, kPiece - used_);
      std::byte* const memory = static_cast<std::byte*>(tensor.data) + done;
      if (group_.rank() == kLeader) backend_.download(buffer_.data() + used_, memory, bytes);
      if (tensor.filled_here) parts_.push_back({memory, used_, bytes});
      used_ += bytes;
      done += bytes;
      if (used_ == kPiece) flush();
    }
  }

  void flush() {
    if (used_ == 0) return;
    group_.broadcast({buffer_.data(), static_cast<size_t>(used_)}, kLeader, "the state");
    if (group_.rank() != kLeader)
      for (const Part& part : parts_) backend_.upload(part.memory, buffer_.data() + part.offset, part.bytes);
    parts_.clear();
    used_ = 0;
  }

 private:
  struct Part {
    std::byte* memory;  // on the device
    int64_t offset;
    int64_t bytes;
  };
  Group& group_;
  Backend& backend_;
  SharedBuffer buffer_;
  int64_t used_ = 0;
  std::vector<Part> parts_;
};

std::string share_text(Group& group, std::string text) {
  int64_t bytes = static_cast<int64_t>(text.size());
  group.broadcast(std::as_writable_bytes(std::span(&bytes, 1)), kLeader, "the size of the state");
  text.resize(static_cast<size_t>(bytes));
  group.broadcast(std::as_writable_bytes(std::span(text)), kLeader, "the state");
  return text;
}

void share(Group& group, TrainStep& train, std::initializer_list<const std::vector<StateTensor>*> lists) {
  TensorStream stream(group, train.backend());
  for (const auto* tensors : lists)
    for (const StateTensor& tensor : *tensors)
      if (tensor.is_whole()) stream.add(tensor);
  stream.flush();
  // Some of it others of this host have filled in.
  group.barrier("the state");
}

}  // namespace

void share_weights(Group& group, TrainStep& train) {
  const TrainState& state = train.state();
  share(group, train, {&state.model(), &state.averages()});
}

void share_state(Group& group, TrainStep& train, RunState& state) {
  const TrainState& tensors = train.state();
  share(group, train, {&tensors.model(), &tensors.optimizer(), &tensors.averages()});
  const std::string text = share_text(group, to_json(state, train.steps_applied()).dump());
  if (group.rank() == kLeader) return;
  const auto json = nlohmann::json::parse(text);
  train.restored(steps_applied_of(json));
  state = run_state_of(json);
}

}  // namespace lockstep
