// normalise: numbers moved and stretched by constants of the training records: to mean 0 and deviation 1, or
// from [smallest, largest] to [0, 1]. What it makes reaches the model as it is.
#include <cmath>

#include "base/error.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"
#include "data/transform/columns_fit.h"
#include "data/transform/statistics.h"

namespace lockstep {
namespace {

struct ColumnMoments {
  Moments moments;

  void add(const BlockColumn& column, size_t) {
    std::vector<double> numbers;
    numbers_of(column, numbers);
    moments.merge(moments_of(numbers));
  }
  void merge(const ColumnMoments& next) { moments.merge(next.moments); }
};

class Normalise : public ColumnTransform {
 public:
  explicit Normalise(const TransformOptions& options) : Normalise(TransformSettings(options)) {}

  std::unique_ptr<TransformFit> begin_fit() const override {
    return std::make_unique<ColumnsFit<ColumnMoments>>(from(), ColumnMoments{});
  }
  void finish_fit(const TransformFit& fit) override {
    const auto& columns = dynamic_cast<const ColumnsFit<ColumnMoments>&>(fit);
    constants_.clear();
    for (size_t i = 0; i < from().size(); ++i) {
      const Moments& m = columns.statistic(i).moments;
      if (m.count == 0)
        throw UserError("transform normalise: column '{}' has no value in the training records; leave it out",
                        from()[i]);
      const double shift = min_max_ ? m.smallest : m.mean;
      const double scale = min_max_ ? m.largest - m.smallest : m.deviation();
      constants_.push_back({shift, scale > 0 ? scale : 1});
    }
  }
  std::string fitted() const override { return fitted_lines(from(), constants_); }
  void set_fitted(std::string_view text) override { constants_ = read_fitted_lines(text, from(), 2); }

 protected:
  BlockField made(size_t, const BlockField&) const override {
    return {.name = {}, .type = ValueType::kF64, .scaled = true};
  }

  void make(size_t i, const BlockColumn& from, ColumnBlock&, BlockColumn& to) const override {
    LOCKSTEP_CHECK(i < constants_.size(), "normalise is used before it is fitted");
    std::vector<double> numbers;
    numbers_of(from, numbers);
    for (double& x : numbers) x = (x - constants_[i][0]) / constants_[i][1];
    to.values = std::move(numbers);
    to.missing = from.missing;
  }

 private:
  explicit Normalise(TransformSettings settings) : ColumnTransform(settings, 1, Wanted::kNumber) {
    min_max_ = settings.choice("method", {"z_score", "min_max"}) == "min_max";
    settings.finish();
  }

  bool min_max_ = false;
  FittedNumbers constants_;  // of each column: what is taken off, and what is divided by
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"method", "`z_score`: mean 0 and deviation 1; `min_max`: smallest 0 and largest 1", "z_score"},
};

}  // namespace

constinit const TransformEntry kNormaliseTransform{
    "normalise",
    "Numbers scaled by constants of the training records. What it makes is not scaled again when the table "
    "is "
    "encoded. Values beyond those of the training records go beyond the range; `clip` them before. Missing "
    "numbers "
    "stay missing.",
    "{name: normalise, columns: [amount, mean_amount], method: min_max}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Normalise>(options);
    }};

}  // namespace lockstep
