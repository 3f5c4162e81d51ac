#include "data/order/shuffle_report.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

void add_lags(const ShuffledStretch& stretch, int64_t lags, ShuffleReport& report) {
  const std::span<const int64_t> records = stretch.records;
  double mean = 0;
  for (const int64_t record : records) mean += static_cast<double>(record);
  mean /= static_cast<double>(records.size());
  const auto off = [&](size_t i) { return static_cast<double>(records[i]) - mean; };
  double variance = 0;
  for (size_t i = 0; i < records.size(); ++i) variance += off(i) * off(i);
  const size_t most = std::min(static_cast<size_t>(lags), records.size() - 1);
  for (size_t lag = 1; lag <= most; ++lag) {
    double sum = 0;
    int64_t same = 0;
    for (size_t i = 0; i + lag < records.size(); ++i) {
      sum += off(i) * off(i + lag);
      same += records[i] / stretch.block == records[i + lag] / stretch.block ? 1 : 0;
    }
    report.correlation.push_back(variance > 0 ? sum / variance : 0);
    report.same_block.push_back(static_cast<double>(same) / static_cast<double>(records.size() - lag));
  }
}

double mean_displacement(const ShuffledStretch& stretch) {
  double sum = 0;
  for (size_t i = 0; i < stretch.records.size(); ++i)
    sum += std::abs(static_cast<double>(stretch.records[i] - stretch.first - static_cast<int64_t>(i)));
  return sum / static_cast<double>(stretch.records.size()) / static_cast<double>(stretch.all);
}

void add_blocks(const ShuffledStretch& stretch, ShuffleReport& report) {
  const int64_t step = std::min(stretch.step, report.positions);
  const int64_t steps = report.positions / step;
  std::vector<int64_t> blocks(static_cast<size_t>(step));
  report.least_blocks = step;
  for (int64_t s = 0; s < steps; ++s) {
    const auto samples = stretch.records.subspan(static_cast<size_t>(s * step), static_cast<size_t>(step));
    std::transform(samples.begin(), samples.end(), blocks.begin(),
                   [&](int64_t record) { return record / stretch.block; });
    std::sort(blocks.begin(), blocks.end());
    const int64_t different = std::unique(blocks.begin(), blocks.end()) - blocks.begin();
    report.least_blocks = std::min(report.least_blocks, different);
    report.most_blocks = std::max(report.most_blocks, different);
    report.mean_blocks += static_cast<double>(different) / static_cast<double>(steps);
  }
  const double all = std::ceil(static_cast<double>(stretch.all) / static_cast<double>(stretch.block));
  // The chance that a step has none of the samples of a given block, drawn from all records.
  const double none = std::pow(1 - static_cast<double>(step) / static_cast<double>(stretch.all),
                               static_cast<double>(stretch.block));
  report.expected_blocks = all * (1 - none);
}

}  // namespace

int64_t ShuffleReport::worst_lag() const {
  const auto worst = std::max_element(correlation.begin(), correlation.end(),
                                      [](double a, double b) { return std::abs(a) < std::abs(b); });
  return worst - correlation.begin() + 1;
}

ShuffleReport report_shuffle(const ShuffledStretch& stretch, int64_t lags) {
  LOCKSTEP_CHECK(stretch.records.size() >= 2 && lags >= 1, "{} positions", stretch.records.size());
  ShuffleReport report;
  report.positions = static_cast<int64_t>(stretch.records.size());
  add_lags(stretch, lags, report);
  report.displacement = mean_displacement(stretch);
  add_blocks(stretch, report);
  return report;
}

ExactlyOnce::ExactlyOnce(int64_t records)
    : records_(records), missing_(records), read_(static_cast<size_t>((records + 63) / 64)) {}

void ExactlyOnce::add(int64_t record) {
  LOCKSTEP_CHECK(record >= 0 && record < records_, "record {} of {}", record, records_);
  uint64_t& word = read_[static_cast<size_t>(record / 64)];
  const uint64_t bit = uint64_t{1} << (record % 64);
  if ((word & bit) != 0) {
    ++repeated_;
    return;
  }
  word |= bit;
  --missing_;
}

}  // namespace lockstep
