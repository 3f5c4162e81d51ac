#include "data/format/column_choice.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/nearest.h"

namespace lockstep {

std::vector<size_t> choose_columns(const std::vector<BlockField>& held, const std::vector<BlockField>& wanted,
                                   const std::string& file) {
  std::vector<size_t> chosen;
  if (wanted.empty()) {
    chosen.resize(held.size());
    std::iota(chosen.begin(), chosen.end(), size_t{0});
    return chosen;
  }
  for (const BlockField& column : wanted) {
    const auto found = std::find_if(held.begin(), held.end(),
                                    [&](const BlockField& field) { return field.name == column.name; });
    if (found == held.end()) {
      std::vector<std::string_view> known;
      for (const BlockField& field : held) known.push_back(field.name);
      throw UserError("{}: there is no column '{}'; {}", file, column.name, suggestion(column.name, known));
    }
    if (column.type != ValueType::kBytes && found->type == ValueType::kBytes)
      throw UserError("{}: column '{}' holds text; name it as categorical, or write it as numbers", file,
                      column.name);
    chosen.push_back(static_cast<size_t>(found - held.begin()));
  }
  return chosen;
}

}  // namespace lockstep
