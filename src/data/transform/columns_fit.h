// ColumnsFit: a fit that keeps one statistic for each of some columns.
//
// A Statistic has add(const BlockColumn&, size_t records) and merge(const Statistic&), the latter called in
// the order of the blocks.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/transform/transform.h"

namespace lockstep {

template <typename Statistic>
class ColumnsFit : public TransformFit {
 public:
  ColumnsFit(const std::vector<std::string>& names, const Statistic& empty)
      : names_(names), statistics_(names.size(), empty) {}

  void add(const ColumnBlock& block) override {
    for (size_t i = 0; i < names_.size(); ++i)
      statistics_[i].add(block.column(names_[i]), static_cast<size_t>(block.records));
  }
  void merge(const TransformFit& next) override {
    const auto& other = dynamic_cast<const ColumnsFit&>(next);
    for (size_t i = 0; i < names_.size(); ++i) statistics_[i].merge(other.statistics_[i]);
  }
  const Statistic& statistic(size_t column) const { return statistics_[column]; }

 private:
  std::vector<std::string> names_;
  std::vector<Statistic> statistics_;
};

// Fitted numbers as text and back, with every bit: a line for each column, its name and its numbers.
using FittedNumbers = std::vector<std::vector<double>>;  // by column

// Empty where nothing is fitted yet.
std::string fitted_lines(const std::vector<std::string>& columns, const FittedNumbers& numbers);
// Throws UserError unless the text is that of these columns, each with `count` finite numbers (-1: any).
FittedNumbers read_fitted_lines(std::string_view text, const std::vector<std::string>& columns,
                                int64_t count);

}  // namespace lockstep
