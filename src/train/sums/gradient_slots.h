// Gradient slots: the partial sums of the canonical tree. A slot holds one flat buffer for all dense
// gradients and the statistics behind them, and, for each table with row gradients, a list of rows.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/collective.h"
#include "passes/row_gradients.h"
#include "runtime/executable.h"
#include "runtime/flat.h"

namespace lockstep {

// A list of rows: unique ids in rising order, then -1, and a row of values for each.
struct RowList {
  std::unique_ptr<Buffer> ids;
  std::unique_ptr<Buffer> rows;
  int64_t length = 0;
};

struct GradientSlot {
  std::unique_ptr<Buffer> dense;
  std::vector<RowList> tables;
};

class GradientSlots {
 public:
  // Makes the buffer of a slot's sums.
  using Allocate = std::function<std::unique_ptr<Buffer>(int64_t bytes)>;

  GradientSlots(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
                int64_t count, const Allocate& allocate);

  Backend& backend() { return backend_; }
  GradientSlot& operator[](int64_t slot) { return slots_[static_cast<size_t>(slot)]; }
  // Where an element of a slot's sums lies.
  void* at(int64_t slot, int64_t element);
  // Replaces the lists of a slot by empty buffers for the lists of one microbatch.
  void reset_lists(int64_t slot);
  // Adds up slots [first, last] over some of the dense sums, from the last to the first, who gets the sum: in
  // one pass, since it is memory that they take their time for.
  void add_dense(int64_t first, int64_t last, Slice elements);
  // Merges lists into those of a slot; a row that only one has passes through.
  void add_lists(int64_t into, std::vector<RowList>& lists);
  // Empty lists for the rows of some microbatches, one per table.
  std::vector<RowList> make_lists(int64_t microbatches = 1) const;
  // Leaves no row in them.
  void make_empty(std::vector<std::vector<RowList>>& lists);
  // A list with the rows of both; those of `a` come first in a sum.
  RowList merge(size_t table, RowList& a, RowList& b);
  int64_t table_count() const { return static_cast<int64_t>(tables_.size()); }
  int64_t bytes() const;

 private:
  RowList make_list(const RowTable& table, int64_t length) const;
  Executable& merger(size_t table, int64_t a, int64_t b);
  void add_some(int64_t first, int64_t last, Slice elements);
  Executable& adder(DType dtype, int64_t terms, int64_t count);

  Backend& backend_;
  FlatLayout layout_;
  std::vector<RowTable> tables_;
  std::vector<GradientSlot> slots_;
  // By type, terms and elements.
  std::map<std::tuple<DType, int64_t, int64_t>, std::unique_ptr<Executable>> adders_;
  // Merging two lists of given lengths, per (table, length, length); one arena for all, of the largest.
  std::map<std::pair<size_t, std::pair<int64_t, int64_t>>, std::unique_ptr<Executable>> merges_;
  std::shared_ptr<Buffer> merge_arena_;
};

}  // namespace lockstep
