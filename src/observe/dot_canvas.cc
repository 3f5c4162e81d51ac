#include "observe/dot_canvas.h"

#include <algorithm>
#include <cstdlib>

namespace lockstep {
namespace {

// The bit of a dot in Unicode's braille block (U+2800), by column and row.
constexpr uint8_t kBrailleBit[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

std::string braille(uint8_t dots) {
  const unsigned code = 0x2800u + dots;
  return {static_cast<char>(0xe0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

}  // namespace

DotCanvas::DotCanvas(int columns, int rows, bool unicode)
    : columns_(columns),
      rows_(rows),
      across_(unicode ? 2 : 1),
      down_(unicode ? 4 : 2),
      unicode_(unicode),
      cells_(static_cast<size_t>(columns) * static_cast<size_t>(rows)) {}

void DotCanvas::set(int x, int y) {
  uint8_t& cell = cells_[static_cast<size_t>(y / down_) * static_cast<size_t>(columns_) +
                         static_cast<size_t>(x / across_)];
  cell |= unicode_ ? kBrailleBit[x % across_][y % down_] : static_cast<uint8_t>(1 << (y % down_));
}

void DotCanvas::line(int x0, int y0, int x1, int y1) {
  const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
  // Rounded half up in integers, the same dots on every machine.
  const auto between = [steps](int from, int to, int i) {
    const int scaled = 2 * (from * (steps - i) + to * i) + steps;
    return scaled / (2 * steps);
  };
  for (int i = 0; i <= steps; ++i) set(between(x0, x1, i), between(y0, y1, i));
}

std::string DotCanvas::row(int row) const {
  const uint8_t* cell = cells_.data() + static_cast<size_t>(row) * static_cast<size_t>(columns_);
  int used = columns_;
  while (used > 0 && cell[used - 1] == 0) --used;
  std::string text;
  for (int i = 0; i < used; ++i) {
    if (cell[i] == 0)
      text += ' ';
    else if (unicode_)
      text += braille(cell[i]);
    else
      text += " '.:"[cell[i]];
  }
  return text;
}

}  // namespace lockstep
