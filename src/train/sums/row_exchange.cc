#include "train/sums/row_exchange.h"

#include "comm/leaf_stack.h"

namespace lockstep {
namespace {

using Lists = std::vector<std::vector<RowList>>;  // per partial sum and table

template <typename Visit>
void for_each_buffer(Lists& lists, const Visit& visit) {
  for (auto& partial : lists)
    for (RowList& list : partial)
      for (Buffer* buffer : {list.ids.get(), list.rows.get()}) visit(*buffer);
}

// The lists of every partial sum of a rank: this worker's own, or received from it.
Lists lists_of(Group& group, const SumTree& tree, GradientSlots& slots, int rank, bool exchanges) {
  const bool mine = rank == group.rank();
  Lists lists;
  const std::vector<SumTree::Partial> partials = tree.partials(rank);
  for (size_t p = 0; p < partials.size(); ++p)
    lists.push_back(mine ? std::move(slots[static_cast<int64_t>(p)].tables)
                         : slots.make_lists(partials[p].microbatches));
  if (!exchanges) {
    if (!mine) slots.make_empty(lists);
    return lists;
  }
  int64_t bytes = 0;
  for_each_buffer(lists, [&](Buffer& buffer) { bytes += buffer.bytes(); });
  std::vector<std::byte> packed(static_cast<size_t>(bytes));
  int64_t at = 0;
  if (mine)
    for_each_buffer(lists, [&](Buffer& buffer) {
      slots.backend().download(packed.data() + at, buffer.data(), buffer.bytes());
      at += buffer.bytes();
    });
  group.broadcast(packed, rank, "rows of tables");
  at = 0;
  if (!mine)
    for_each_buffer(lists, [&](Buffer& buffer) {
      slots.backend().upload(buffer.data(), packed.data() + at, buffer.bytes());
      at += buffer.bytes();
    });
  return lists;
}

}  // namespace

void exchange_rows(Group& group, const SumTree& tree, GradientSlots& slots, int64_t own, bool exchanges) {
  Lists stacked;
  LeafStack stack(tree.leaves());
  const auto merge_tables = [&](int64_t into, int64_t from) {
    for (size_t table = 0; table < static_cast<size_t>(slots.table_count()); ++table) {
      RowList& left = stacked[static_cast<size_t>(into)][table];
      left = slots.merge(table, left, stacked[static_cast<size_t>(from)][table]);
    }
    stacked.resize(static_cast<size_t>(from));
  };
  for (int rank = 0; rank < group.size(); ++rank) {
    Lists lists = lists_of(group, tree, slots, rank, exchanges);
    for (size_t p = 0; p < lists.size(); ++p) {
      stacked.push_back(std::move(lists[p]));
      stack.push(tree.partials(rank)[p].leaves, merge_tables);
    }
  }
  slots[0].tables = std::move(stacked[0]);
  for (int64_t slot = 1; slot < own; ++slot) slots[slot].tables = slots.make_lists();
}

}  // namespace lockstep
