#include "run/split_state.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr int kLeader = 0;

Slice intersection(Slice a, Slice b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// Calls visit(elements, address) for what of the wanted elements lies here.
template <typename Visit>
void for_pieces(const StateTensor& tensor, Slice wanted, const Visit& visit) {
  for (const StatePiece& piece : tensor.pieces) {
    const Slice part = intersection(wanted, {piece.first, piece.first + piece.count});
    if (part.size() > 0)
      visit(part, static_cast<std::byte*>(piece.data) + (part.begin - piece.first) * size_of(tensor.dtype));
  }
}

}  // namespace

struct SplitState::Request {
  int64_t takes = 0;     // whether the bytes come from the leader
  int64_t averages = 0;  // in which list the tensor is
  int64_t index = 0;
  Slice elements;
};

SplitState::SplitState(Workers& workers, TrainStep& train)
    : workers_(workers), group_(*workers.group()), train_(train) {
  workers.serve_with([this] { serve(); });
}

SplitState::Request SplitState::request_of(const StateTensor& tensor, int64_t first, size_t bytes) const {
  const TrainState& state = train_.state();
  const auto is_in = [&](const std::vector<StateTensor>& list) {
    return !list.empty() && &tensor >= list.data() && &tensor < list.data() + list.size();
  };
  Request request;
  request.averages = is_in(state.averages()) ? 1 : 0;
  const auto& list = request.averages != 0 ? state.averages() : state.optimizer();
  LOCKSTEP_CHECK(is_in(list), "{} is not split", tensor.name);
  request.index = &tensor - list.data();
  const int64_t element = size_of(tensor.dtype);
  request.elements = {first / element, (first + static_cast<int64_t>(bytes)) / element};
  return request;
}

void SplitState::broadcast(Request& request) {
  group_.broadcast(std::as_writable_bytes(std::span(&request, 1)), kLeader, "a piece of the state");
}

void SplitState::read(const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
  workers_.call("a piece of the state");
  Request request = request_of(tensor, first, into.size());
  broadcast(request);
  const int64_t element = size_of(tensor.dtype);
  const auto place = [&](Slice part) {
    return into.data() + (part.begin - request.elements.begin) * element;
  };
  for_pieces(tensor, request.elements, [&](Slice part, const std::byte* own) {
    train_.backend().download(place(part), own, part.size() * element);
  });
  for (int rank = 1; rank < group_.size(); ++rank)
    for (const Slice& held : train_.state().held_by(rank, tensor)) {
      const Slice part = intersection(request.elements, held);
      if (part.size() > 0) group_.receive(rank, {place(part), static_cast<size_t>(part.size() * element)});
    }
}

void SplitState::write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from) {
  workers_.call("a piece of the state");
  Request request = request_of(tensor, first, from.size());
  request.takes = 1;
  broadcast(request);
  std::vector<std::byte> data(from.begin(), from.end());
  group_.broadcast(data, kLeader, "a piece of the state");
  take(tensor, request.elements, data.data());
}

void SplitState::serve() {
  Request request;
  broadcast(request);
  const TrainState& state = train_.state();
  const auto& list = request.averages != 0 ? state.averages() : state.optimizer();
  const StateTensor& tensor = list.at(static_cast<size_t>(request.index));
  if (request.takes == 0) return give(tensor, request.elements);
  std::vector<std::byte> data(static_cast<size_t>(request.elements.size() * size_of(tensor.dtype)));
  group_.broadcast(data, kLeader, "a piece of the state");
  take(tensor, request.elements, data.data());
}

void SplitState::give(const StateTensor& tensor, Slice wanted) {
  std::vector<std::byte> data;
  for_pieces(tensor, wanted, [&](Slice part, const std::byte* own) {
    data.resize(static_cast<size_t>(part.size() * size_of(tensor.dtype)));
    train_.backend().download(data.data(), own, static_cast<int64_t>(data.size()));
    group_.send(kLeader, data);
  });
}

void SplitState::take(const StateTensor& tensor, Slice given, const std::byte* from) {
  const int64_t element = size_of(tensor.dtype);
  for_pieces(tensor, given, [&](Slice part, std::byte* own) {
    train_.backend().upload(own, from + (part.begin - given.begin) * element, part.size() * element);
  });
}

std::unique_ptr<Buffer> SplitState::averages() {
  const std::vector<StateTensor>& tensors = train_.state().averages();
  int64_t numel = 0;
  for (const StateTensor& tensor : tensors)
    if (!tensor.is_whole()) numel = std::max(numel, tensor.flat_offset + tensor.shape.numel());
  if (numel == 0) return nullptr;
  auto buffer = train_.backend().allocate(numel * int64_t{sizeof(float)});
  std::vector<std::byte> piece(static_cast<size_t>(kCheckpointStaging));
  for (const StateTensor& tensor : tensors) {
    if (tensor.is_whole()) continue;
    for (int64_t first = 0; first < tensor.bytes(); first += kCheckpointStaging) {
      const auto part =
          std::span(piece).first(static_cast<size_t>(std::min(kCheckpointStaging, tensor.bytes() - first)));
      read(tensor, first, part);
      train_.backend().upload(
          static_cast<char*>(buffer->data()) + tensor.flat_offset * int64_t{sizeof(float)} + first,
          part.data(), static_cast<int64_t>(part.size()));
    }
  }
  return buffer;
}

PieceQueue::Read PieceQueue::reader() const {
  return [shared = shared_](const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
    std::unique_lock lock(shared->mutex);
    shared->tensor = &tensor;
    shared->first = first;
    shared->into = into;
    shared->changed.notify_all();
    shared->changed.wait(lock, [&] { return shared->tensor == nullptr || shared->closed; });
    if (shared->error) std::rethrow_exception(std::exchange(shared->error, nullptr));
    if (shared->closed) throw CommError("the other workers were not there to be asked for {}", tensor.name);
  };
}

void PieceQueue::answer(std::chrono::milliseconds time, const Read& read) {
  std::unique_lock lock(shared_->mutex);
  if (!shared_->changed.wait_for(lock, time, [this] { return shared_->tensor != nullptr; })) return;
  try {
    read(*shared_->tensor, shared_->first, shared_->into);
  } catch (...) {
    shared_->error = std::current_exception();
  }
  const std::exception_ptr error = shared_->error;
  shared_->tensor = nullptr;
  lock.unlock();
  shared_->changed.notify_all();
  if (error) std::rethrow_exception(error);
}

void PieceQueue::close() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
  }
  shared_->changed.notify_all();
}

}  // namespace lockstep
