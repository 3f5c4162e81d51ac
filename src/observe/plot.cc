#include "observe/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/number_text.h"
#include "observe/dot_canvas.h"

namespace lockstep {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  // The dot of a value among `dots`, which stand for low ... high.
  int dot(double value, int dots) const {
    if (high == low) return dots / 2;
    // Halved, so that the difference of two huge values stays finite.
    const double share = (value / 2 - low / 2) / (high / 2 - low / 2);
    return static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * (dots - 1)));
  }
};

struct Frame {
  std::string_view tick, side, corner, bottom, mark;
};
constexpr Frame kUnicode{"┤", "│", "└", "─", "┬"};
constexpr Frame kAscii{"+", "|", "+", "-", "+"};

bool drawable(double x, double y) { return std::isfinite(x) && std::isfinite(y); }

void draw(DotCanvas& canvas, std::span<const double> x, std::span<const double> y, const Range& across,
          const Range& up) {
  bool joined = false;
  int last_x = 0, last_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!drawable(x[i], y[i])) {
      joined = false;
      continue;
    }
    const int dot_x = across.dot(x[i], canvas.dots_across());
    const int dot_y = canvas.dots_down() - 1 - up.dot(y[i], canvas.dots_down());
    canvas.line(joined ? last_x : dot_x, joined ? last_y : dot_y, dot_x, dot_y);
    last_x = dot_x;
    last_y = dot_y;
    joined = true;
  }
}

// Up to six digits for steps; as few as tell the ends apart for the rest.
std::pair<std::string, std::string> end_labels(const Range& range) {
  std::pair<std::string, std::string> labels;
  for (int digits = 3; digits <= 8; ++digits) {
    labels = {short_number(range.low, digits), short_number(range.high, digits)};
    if (labels.first != labels.second) break;
  }
  return labels;
}

std::string bottom_axis(const Range& across, const Frame& frame, size_t margin, int width,
                        const PlotOptions& options) {
  const auto label = [&](double place) {
    return short_number(options.log_x ? std::pow(10, place) : place, 7);
  };
  const std::string low = label(across.low), high = label(across.high);
  std::string text = fmt::format("{:{}} {}{}", "", margin, frame.corner, frame.mark);
  for (int i = 0; i < width - 2; ++i) text += frame.bottom;
  text += fmt::format("{}\n{:{}}", frame.mark, "", margin + 2);
  // The right label ends under the right mark.
  const auto room = static_cast<size_t>(width);
  const size_t gap = room > low.size() + high.size() ? room - low.size() - high.size() : 1;
  text += fmt::format("{}{:{}}{}", low, "", gap, high);
  return text + (options.x_name.empty() ? "" : "  " + options.x_name) + "\n";
}

}  // namespace

std::string line_plot(std::span<const double> xs, std::span<const double> y, const PlotOptions& options) {
  LOCKSTEP_CHECK(xs.size() == y.size(), "{} x and {} y", xs.size(), y.size());
  std::vector<double> x(xs.begin(), xs.end());
  if (options.log_x)
    for (double& value : x) value = std::log10(value);
  const int width = std::max(8, options.width), height = std::max(2, options.height);
  Range across, up;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!drawable(x[i], y[i])) continue;
    across.include(x[i]);
    up.include(y[i]);
  }
  if (across.empty()) return "(nothing to plot)\n";
  if (options.from_zero) up.include(0);

  DotCanvas canvas(width, height, options.unicode);
  draw(canvas, x, y, across, up);
  const Frame& frame = options.unicode ? kUnicode : kAscii;
  const auto [low, high] = end_labels(up);
  const size_t margin = std::max(low.size(), high.size());
  // A level line is drawn in the middle, and there stands its label.
  const bool level = up.low == up.high;
  std::string text;
  for (int row = 0; row < height; ++row) {
    const bool at_high = row == (level ? (height - 1) / 2 : 0), at_low = row == height - 1 && !level;
    text += fmt::format("{:>{}} {}{}\n",
                        at_high  ? high
                        : at_low ? low
                                 : "",
                        margin, at_high || at_low ? frame.tick : frame.side, canvas.row(row));
  }
  return text + bottom_axis(across, frame, margin, width, options);
}

bool environment_is_utf8() {
  // The first of these that is set decides, as for the C library.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale = value;
    std::transform(locale.begin(), locale.end(), locale.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return locale.ends_with("utf-8") || locale.ends_with("utf8");
  }
  return false;
}

}  // namespace lockstep
