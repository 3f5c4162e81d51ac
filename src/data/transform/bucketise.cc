// bucketise: numbers become the bucket they lie in, by boundaries that are given or that divide the training
// records evenly. Bucket 0 is for missing numbers; a number that equals a boundary lies above it.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"
#include "data/transform/columns_fit.h"
#include "data/transform/statistics.h"

namespace lockstep {
namespace {

constexpr int64_t kMostBuckets = 100000;

struct ColumnQuantiles {
  QuantileSketch sketch;

  void add(const BlockColumn& column, size_t) {
    std::vector<double> numbers;
    numbers_of(column, numbers);
    for (const double x : numbers)
      if (!std::isnan(x)) sketch.add(x);
  }
  void merge(const ColumnQuantiles& next) { sketch.merge(next.sketch); }
};

// Ascending and distinct, so fewer than asked for where values repeat; none leaves a first bucket empty.
std::vector<double> even_boundaries(const QuantileSketch& sketch, int64_t buckets) {
  std::vector<double> boundaries;
  for (int64_t k = 1; k < buckets; ++k) {
    const double at = sketch.at(sketch.count() / buckets * k + sketch.count() % buckets * k / buckets);
    if (at > (boundaries.empty() ? sketch.smallest() : boundaries.back())) boundaries.push_back(at);
  }
  return boundaries;
}

bool ascending(const std::vector<double>& boundaries) {
  for (size_t i = 1; i < boundaries.size(); ++i)
    if (!(boundaries[i - 1] < boundaries[i])) return false;
  return true;
}

class Bucketise : public ColumnTransform {
 public:
  explicit Bucketise(const TransformOptions& options) : Bucketise(TransformSettings(options)) {}

  std::unique_ptr<TransformFit> begin_fit() const override {
    if (quantiles_ == 0) return nullptr;
    return std::make_unique<ColumnsFit<ColumnQuantiles>>(from(), ColumnQuantiles{});
  }
  void finish_fit(const TransformFit& fit) override {
    const auto& columns = dynamic_cast<const ColumnsFit<ColumnQuantiles>&>(fit);
    boundaries_.clear();
    for (size_t i = 0; i < from().size(); ++i) {
      const QuantileSketch& sketch = columns.statistic(i).sketch;
      if (sketch.count() == 0)
        throw UserError("transform bucketise: column '{}' has no value in the training records; leave it out",
                        from()[i]);
      boundaries_.push_back(even_boundaries(sketch, quantiles_));
    }
  }
  std::string fitted() const override {
    return quantiles_ == 0 ? std::string() : fitted_lines(from(), boundaries_);
  }
  void set_fitted(std::string_view text) override {
    FittedNumbers read = read_fitted_lines(text, from(), -1);
    for (const std::vector<double>& boundaries : read)
      if (static_cast<int64_t>(boundaries.size()) >= quantiles_ || !ascending(boundaries))
        throw UserError("the boundaries are not those of {} buckets", quantiles_);
    boundaries_ = std::move(read);
  }

 protected:
  BlockField made(size_t, const BlockField&) const override {
    const int64_t buckets = quantiles_ > 0 ? quantiles_ : static_cast<int64_t>(boundaries_[0].size()) + 1;
    return {.name = {}, .type = ValueType::kI32, .ids = buckets + 1};
  }

  void make(size_t i, const BlockColumn& from, ColumnBlock&, BlockColumn& to) const override {
    LOCKSTEP_CHECK(i < boundaries_.size(), "bucketise is used before it is fitted");
    const std::vector<double>& boundaries = boundaries_[i];
    std::vector<double> numbers;
    numbers_of(from, numbers);
    std::vector<int32_t> ids(numbers.size());
    for (size_t r = 0; r < numbers.size(); ++r) {
      if (std::isnan(numbers[r])) {
        mark_missing(to, r, numbers.size());
        continue;
      }
      const auto above = std::upper_bound(boundaries.begin(), boundaries.end(), numbers[r]);
      ids[r] = static_cast<int32_t>(1 + (above - boundaries.begin()));
    }
    to.values = std::move(ids);
  }

 private:
  explicit Bucketise(TransformSettings settings) : ColumnTransform(settings, 1, Wanted::kNumber) {
    const std::vector<double> given = settings.optional_numbers("boundaries");
    quantiles_ = settings.whole("quantiles", 2, kMostBuckets, 0);
    settings.finish();
    if (given.empty() == (quantiles_ == 0))
      throw UserError("transform bucketise needs boundaries or quantiles, one of the two");
    for (size_t i = 1; i < given.size(); ++i)
      if (!(given[i - 1] < given[i]))
        throw UserError("transform bucketise: boundary {} comes after {}; write them in ascending order",
                        given[i], given[i - 1]);
    if (quantiles_ == 0) boundaries_.assign(from().size(), given);
  }

  int64_t quantiles_ = 0;     // 0: the boundaries are given
  FittedNumbers boundaries_;  // of each column
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"boundaries", "ascending numbers; n of them make n + 1 buckets", "`quantiles`"},
    {"quantiles", "how many buckets the training records are divided into, as evenly as their values allow",
     "`boundaries`"},
};

}  // namespace

constinit const TransformEntry kBucketiseTransform{
    "bucketise",
    "The bucket that a number lies in: a category, with a row of its table for each bucket. 0 is for missing "
    "numbers, 1 for those below the first boundary; a number that equals a boundary lies above it. Fitted "
    "quantiles "
    "are exact where values repeat, and otherwise off by less than one part in 4096.",
    "{name: bucketise, columns: [amount], as: [amount_bucket], quantiles: 16}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Bucketise>(options);
    }};

}  // namespace lockstep
