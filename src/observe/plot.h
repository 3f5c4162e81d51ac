// A line in a terminal: points joined by straight lines, with both axes labelled.
//
//   8e-4 ┤     ⣀⠤⠒⠤⣀
//        │  ⡠⠊      ⠉⠒⠤⣀
//      0 ┤⠔⠁            ⠉⠒
//        └┬───────────────┬
//         1             100  step
//
// Braille characters give 2 x 4 dots per cell; plain ASCII 1 x 2.
#pragma once
#include <span>
#include <string>

namespace lockstep {

struct PlotOptions {
  int width = 64;   // columns of the plotting area, at least 8
  int height = 12;  // rows of it, at least 2
  bool unicode = true;
  bool from_zero = false;  // the vertical axis includes 0
  bool log_x = false;      // x is above 0, and its axis logarithmic
  std::string x_name;
};

// Points in order of x. What is not finite is left out, and the line is broken there. Ends with a newline.
std::string line_plot(std::span<const double> x, std::span<const double> y, const PlotOptions& options = {});

// Whether the locale of the environment says UTF-8.
bool environment_is_utf8();

}  // namespace lockstep
