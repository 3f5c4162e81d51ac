// What a step holds, by the names of the model: wherever its parts lie, on this worker's device or on
// others'.
#include <algorithm>

#include "base/error.h"
#include "train/state/state_hash.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

std::vector<float> floats_of(DType dtype, std::span<const std::byte> stored) {
  std::vector<float> values(stored.size() / static_cast<size_t>(size_of(dtype)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(read_element(dtype, stored.data(), static_cast<int64_t>(i)));
  return values;
}

}  // namespace

std::vector<float> TrainStep::param(std::string_view name) {
  catch_up_all();
  const StateTensor& found = state_.param(name);
  if (found.is_whole()) return read_floats(found.dtype, found.data, found.shape.numel());
  std::vector<std::byte> stored(static_cast<size_t>(found.bytes()));
  read_together(found, 0, stored);
  return floats_of(found.dtype, stored);
}

void TrainStep::read_state(const StateTensor& tensor, int64_t first, std::span<std::byte> into) const {
  if (tensor.is_whole())
    return backend_.download(into.data(), static_cast<const std::byte*>(tensor.data) + first,
                             static_cast<int64_t>(into.size()));
  LOCKSTEP_CHECK(split_.read, "nobody reads {}, which is split", tensor.name);
  split_.read(tensor, first, into);
}

void TrainStep::write_state(const StateTensor& tensor, int64_t first, std::span<const std::byte> from) {
  if (tensor.is_whole())
    return backend_.upload(static_cast<std::byte*>(tensor.data) + first, from.data(),
                           static_cast<int64_t>(from.size()));
  LOCKSTEP_CHECK(split_.write, "nobody writes {}, which is split", tensor.name);
  split_.write(tensor, first, from);
}

void TrainStep::read_together(const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
  const int64_t element = size_of(tensor.dtype);
  const int64_t begin = first / element, end = begin + static_cast<int64_t>(into.size()) / element;
  const auto within = [&](int64_t from, int64_t until) {
    return Slice{std::max(begin, from), std::min(end, until)};
  };
  const auto place = [&](Slice part) {
    return into.subspan(static_cast<size_t>((part.begin - begin) * element),
                        static_cast<size_t>(part.size() * element));
  };
  std::ranges::fill(into, std::byte{0});
  for_pieces(tensor, {begin, end}, [&](Slice part, const std::byte* own) {
    backend_.download(place(part).data(), own, part.size() * element);
  });
  if (group_ == nullptr || !ownership_.is_split() || tensor.flat_offset < 0) return;
  const RankLine line = groups_.shape.line(MeshAxis::kData, groups_.rank);
  for (int rank = 0; rank < group_->size(); ++rank)
    for (const Slice& held : state_.held_by(line.number(rank), tensor, TrainState::Held::kAll))
      if (const Slice part = within(held.begin, held.end); part.size() > 0)
        group_->broadcast(place(part), rank, "weights");
}

std::vector<float> TrainStep::read_floats(DType dtype, const void* data, int64_t count) const {
  std::vector<std::byte> stored(static_cast<size_t>(count * size_of(dtype)));
  backend_.download(stored.data(), data, static_cast<int64_t>(stored.size()));
  return floats_of(dtype, stored);
}

void TrainStep::set_param(std::string_view name, const std::vector<float>& values) {
  const StateTensor& found = state_.param(name);
  LOCKSTEP_CHECK(static_cast<int64_t>(values.size()) == found.shape.numel(), "values for {}", name);
  std::vector<std::byte> stored(static_cast<size_t>(found.bytes()));
  for (size_t i = 0; i < values.size(); ++i)
    write_element(found.dtype, stored.data(), static_cast<int64_t>(i), static_cast<double>(values[i]));
  state_.gate().wait();
  for (const StatePiece& piece : pieces_of(found))
    backend_.upload(piece.data, stored.data() + piece.first * size_of(found.dtype),
                    piece.count * size_of(found.dtype));
}

std::vector<float> TrainStep::entry_grad(const FlatEntry& entry) const {
  if (!ownership_.is_split())
    return read_floats(layout_.dtype(), sums_->slots().at(0, entry.offset), entry.shape.numel());
  std::vector<float> values(static_cast<size_t>(entry.shape.numel()), 0.0f);
  for (const SliceUpdate& one : slices_) {
    const Slice& slice = owned_[one.slice];
    const int64_t begin = std::max(slice.begin, entry.offset);
    const int64_t end = std::min(slice.end, entry.offset + entry.shape.numel());
    if (begin >= end) continue;
    const auto own = read_floats(layout_.dtype(), root_at(begin), end - begin);
    std::copy(own.begin(), own.end(), values.begin() + (begin - entry.offset));
  }
  return values;
}

std::vector<float> TrainStep::grad(std::string_view name) const {
  const StateTensor& found = state_.param(name);
  std::vector<float> values(static_cast<size_t>(found.shape.numel()), 0.0f);
  for (const FlatEntry& entry : layout_.entries()) {
    const LeafPiece* const leaf = state_.piece(entry.name);
    if (entry.name == name) values = entry_grad(entry);
    if (leaf == nullptr || leaf->param != name) continue;
    const std::vector<float> own = entry_grad(entry);
    leaf->for_runs([&](int64_t first, int64_t at, int64_t count) {
      std::copy_n(own.begin() + at, count, values.begin() + first);
    });
  }
  if (!sums_) return values;
  const GradientSlot& root = sums_->slots()[0];
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].name != name) continue;
    const RowList& list = root.tables[i];
    const int64_t columns = tables_[i].table[1];
    std::vector<int32_t> ids(static_cast<size_t>(list.length));
    std::vector<float> rows(static_cast<size_t>(list.length * columns));
    backend_.download(ids.data(), list.ids->data(), list.ids->bytes());
    backend_.download(rows.data(), list.rows->data(), list.rows->bytes());
    for (int64_t k = 0; k < list.length; ++k)
      if (ids[static_cast<size_t>(k)] >= 0)
        std::copy_n(rows.begin() + k * columns, columns,
                    values.begin() + ids[static_cast<size_t>(k)] * columns);
  }
  return values;
}

std::string TrainStep::weights_sha256() {
  // Who owns none of them waits for nothing else.
  backend_.compute().synchronize();
  std::vector<const StateTensor*> held;
  for (const StateTensor& tensor : state().model())
    if (state_.is_held_here(tensor)) held.push_back(&tensor);
  return sha256_of(backend_, std::move(held),
                   [this](const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
                     read_together(tensor, first, into);
                   });
}

}  // namespace lockstep
