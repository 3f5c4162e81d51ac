// sort_ids: groups the positions of an id list by id, keeping the order of positions within an id.
//
// It turns the gradient of an embedding, or any scatter_add over rows, into one independent ordered sum per
// touched row. Stable radix sort over (id, position); the work depends on n and table_rows alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::cpu {

// Views into the workspace: unit u is table row rows[u], met at positions[starts[u] ... starts[u + 1]).
struct SortedIds {
  std::span<const int32_t> rows;       // ascending
  std::span<const int32_t> starts;     // rows.size() + 1 entries
  std::span<const int32_t> positions;  // every position except those of ignored ids
  int64_t bad_position = -1;  // first position with an id outside the table; then nothing else is set
};

// Bytes of workspace for n ids (at most 2^31 - 1); the workspace is aligned to 8.
size_t sorted_ids_bytes(int64_t n);

// Where a table is a part of a longer one: ids count the rows of that one.
struct TablePart {
  int64_t first = 0;  // its first row
  int64_t whole = 0;  // rows of the longer one; 0: the table is whole
};

// Ids equal to `ignore` are left out (a padding id has no gradient), also when outside the table; -1 ignores
// none of the valid ids. So are those of the other parts of a table.
SortedIds sort_ids(std::span<const int32_t> ids, int64_t table_rows, int64_t ignore,
                   std::span<std::byte> workspace, TablePart part = {});
SortedIds sort_ids(std::span<const int64_t> ids, int64_t table_rows, int64_t ignore,
                   std::span<std::byte> workspace, TablePart part = {});

// For embedding bags: bag_of[i] = the bag that holds position i; weights[b] = 1 / size of bag b (0 where
// empty), or is left alone when empty. offsets has bags + 1 entries.
void expand_bags(std::span<const int32_t> offsets, std::span<int32_t> bag_of, std::span<float> weights);
void expand_bags(std::span<const int64_t> offsets, std::span<int32_t> bag_of, std::span<float> weights);

}  // namespace lockstep::cpu
