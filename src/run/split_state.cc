#include "run/split_state.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "train/state/run_downloads.h"
#include "train/state/state_hash.h"

namespace lockstep {
namespace {

constexpr int kLeader = 0;

// What of the held elements is wanted.
std::vector<Slice> within(Slice wanted, const std::vector<Slice>& held) {
  std::vector<Slice> parts;
  for (const Slice& slice : held) {
    const Slice part{std::max(wanted.begin, slice.begin), std::min(wanted.end, slice.end)};
    if (part.begin < part.end) parts.push_back(part);
  }
  return parts;
}

// Where tensors may be that are split. Parameters, and frozen ones, are in two of them.
std::array<const std::vector<StateTensor>*, 6> lists_of(const TrainState& state) {
  return {&state.optimizer(), &state.averages(), &state.model(),
          &state.params(),    &state.frozen(),   &state.residuals()};
}

}  // namespace

struct SplitState::Request {
  int64_t takes = 0;  // whether the bytes come from the leader
  int64_t list = 0;   // that the tensor is in
  int64_t index = 0;
  Slice elements;
};

SplitState::SplitState(Workers& workers, TrainStep& train)
    : workers_(workers), group_(workers.group()), train_(train) {
  workers.serve_with(Workers::Service::kStatePieces, [this] { serve(); });
}

SplitState::Request SplitState::request_of(const StateTensor& tensor, int64_t first, size_t bytes) const {
  const auto is_in = [&](const std::vector<StateTensor>& list) {
    return !list.empty() && &tensor >= list.data() && &tensor < list.data() + list.size();
  };
  const auto lists = lists_of(train_.state_as_it_lies());
  Request request;
  while (request.list < static_cast<int64_t>(lists.size()) &&
         !is_in(*lists[static_cast<size_t>(request.list)]))
    ++request.list;
  LOCKSTEP_CHECK(request.list < static_cast<int64_t>(lists.size()), "{} is not of the state", tensor.name);
  request.index = &tensor - lists[static_cast<size_t>(request.list)]->data();
  const int64_t element = size_of(tensor.dtype);
  request.elements = {first / element, (first + static_cast<int64_t>(bytes)) / element};
  return request;
}

void SplitState::broadcast(Request& request) {
  group_->broadcast(std::as_writable_bytes(std::span(&request, 1)), kLeader, "a piece of the state");
}

void SplitState::read(const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
  Request request = request_of(tensor, first, into.size());
  const int64_t element = size_of(tensor.dtype);
  const auto place = [&](Slice part) {
    return into.data() + (part.begin - request.elements.begin) * element;
  };
  if (group_ != nullptr) {
    workers_.call(Workers::Service::kStatePieces, "a piece of the state");
    broadcast(request);
  }
  RunDownloads downloads(train_.backend());
  for_pieces(tensor, request.elements, [&](Slice part, const std::byte* own) {
    downloads.add(place(part), own, part.size() * element);
  });
  downloads.finish();
  std::vector<std::byte> data;
  for (int rank = 1; rank < workers_.count(); ++rank) {
    const std::vector<Slice> parts =
        within(request.elements, train_.state_as_it_lies().held_by(rank, tensor));
    data.resize(static_cast<size_t>(numel(parts) * element));
    if (data.empty()) continue;
    group_->receive(rank, data);
    const std::byte* from = data.data();
    for (const Slice& part : parts) {
      std::memcpy(place(part), from, static_cast<size_t>(part.size() * element));
      from += part.size() * element;
    }
  }
}

void SplitState::write(const StateTensor& tensor, int64_t first, std::span<const std::byte> from) {
  Request request = request_of(tensor, first, from.size());
  if (group_ != nullptr) {
    workers_.call(Workers::Service::kStatePieces, "a piece of the state");
    request.takes = 1;
    broadcast(request);
    std::vector<std::byte> data(from.begin(), from.end());
    group_->broadcast(data, kLeader, "a piece of the state");
  }
  take(tensor, request.elements, from.data());
}

void SplitState::serve() {
  Request request;
  broadcast(request);
  const auto& list = *lists_of(train_.state()).at(static_cast<size_t>(request.list));
  const StateTensor& tensor = list.at(static_cast<size_t>(request.index));
  if (request.takes == 0) return give(tensor, request.elements);
  std::vector<std::byte> data(static_cast<size_t>(request.elements.size() * size_of(tensor.dtype)));
  group_->broadcast(data, kLeader, "a piece of the state");
  take(tensor, request.elements, data.data());
}

// In one message, however many runs of elements they are.
void SplitState::give(const StateTensor& tensor, Slice wanted) {
  const int64_t element = size_of(tensor.dtype);
  const std::vector<Slice> parts = within(wanted, train_.state().held_by(group_->rank(), tensor));
  std::vector<std::byte> data(static_cast<size_t>(numel(parts) * element));
  if (data.empty()) return;
  std::byte* into = data.data();
  RunDownloads downloads(train_.backend());
  for (const Slice& wanted_part : parts)
    for_pieces(tensor, wanted_part, [&](Slice part, const std::byte* own) {
      downloads.add(into, own, part.size() * element);
      into += part.size() * element;
    });
  downloads.finish();
  group_->send(kLeader, data);
}

void SplitState::take(const StateTensor& tensor, Slice given, const std::byte* from) {
  if (!tensor.filled_here) return;
  const int64_t element = size_of(tensor.dtype);
  for_pieces(tensor, given, [&](Slice part, std::byte* own) {
    train_.backend().upload(own, from + (part.begin - given.begin) * element, part.size() * element);
  });
}

std::string SplitState::weights_sha256() {
  std::vector<const StateTensor*> tensors;
  for (const StateTensor& tensor : train_.state().model()) tensors.push_back(&tensor);
  return sha256_of(train_.backend(), std::move(tensors),
                   [this](const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
                     read(tensor, first, into);
                   });
}

}  // namespace lockstep
