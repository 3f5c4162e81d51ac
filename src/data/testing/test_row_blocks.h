// Blocks for tests of what holds them, with values that say which record they are.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "data/reading/row_block.h"

namespace lockstep {

inline constexpr uint32_t kTestBlockRecords = 64;

// Record r of block `key` holds 64 times the number key * kTestBlockRecords + r.
inline std::unique_ptr<RowBlock> test_row_block(int64_t key) {
  static const std::vector<Column> columns{{"x", DType::kI32, {64}}};
  ColumnBlock block;
  block.reset({{"x", ValueType::kI32, 64}});
  block.records = kTestBlockRecords;
  std::vector<int32_t>& values = block.columns[0].as<int32_t>();
  for (uint32_t r = 0; r < kTestBlockRecords; ++r)
    values.insert(values.end(), 64, static_cast<int32_t>(key * kTestBlockRecords + r));
  return std::make_unique<RowBlock>(RowLayout(columns), columns, block);
}

}  // namespace lockstep
