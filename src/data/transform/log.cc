// log: the logarithm of numbers, for amounts and counts that span many powers of ten. Taken with
// base/portable_math.h, so that it has the same bits on every machine.
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

class Log : public ColumnTransform {
 public:
  explicit Log(const TransformOptions& options) : Log(TransformSettings(options)) {}

 protected:
  BlockField made(size_t, const BlockField&) const override { return {{}, ValueType::kF64, 1}; }

  void make(size_t, const BlockColumn& from, ColumnBlock&, BlockColumn& to) const override {
    std::vector<double> numbers;
    numbers_of(from, numbers);
    for (size_t r = 0; r < numbers.size(); ++r)
      if (!std::isnan(numbers[r])) numbers[r] = log_of(numbers[r], r, from.name);
    to.values = std::move(numbers);
    to.missing = from.missing;
  }

 private:
  explicit Log(TransformSettings settings) : ColumnTransform(settings, 1, Wanted::kNumber) {
    const std::string method = settings.choice("method", {"log1p", "signed", "log"});
    settings.finish();
    signed_ = method == "signed";
    plain_ = method == "log";
  }

  double log_of(double x, size_t row, const std::string& column) const {
    if (plain_) {
      if (!(x >= kSmallest))
        throw BadValue(row, fmt::format("column '{}' is {}, and log needs numbers above 0; use method: log1p "
                                        "or clip it first",
                                        column, x));
      return portable_log(x);
    }
    if (signed_ && x < 0) return -portable_log1p(-x);
    if (!(x >= 0))
      throw BadValue(row, fmt::format("column '{}' is {}, and log1p needs numbers of at least 0; use method: "
                                      "signed or clip it first",
                                      column, x));
    return portable_log1p(x);
  }

  static constexpr double kSmallest = 1e-300;  // well within the normal numbers
  bool signed_ = false, plain_ = false;
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"method", "`log1p`: log(1 + x); `signed`: the same of \\|x\\| with the sign of x; `log`: log(x)",
     "log1p"},
};

}  // namespace

constinit const TransformEntry kLogTransform{
    "log",
    "The natural logarithm. A number that it is not there for is an error that names file and line. Missing "
    "numbers stay missing.",
    "{name: log, columns: [amount]}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Log>(options);
    }};

}  // namespace lockstep
