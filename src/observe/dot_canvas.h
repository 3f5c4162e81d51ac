// DotCanvas: dots on a grid finer than the characters that show them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class DotCanvas {
 public:
  // Cells of 2 x 4 braille dots, or in ASCII of one column and two dots: ' . :
  DotCanvas(int columns, int rows, bool unicode);

  int dots_across() const { return columns_ * across_; }
  int dots_down() const { return rows_ * down_; }
  // Dots count from the top left. Both ends must be on the canvas.
  void line(int x0, int y0, int x1, int y1);
  // One row of cells as text, without blanks at the end.
  std::string row(int row) const;

 private:
  void set(int x, int y);

  int columns_, rows_, across_, down_;
  bool unicode_;
  std::vector<uint8_t> cells_;  // one bit per dot
};

}  // namespace lockstep
