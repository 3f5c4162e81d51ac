// Ranks that are equally far apart among all ranks of a run: those of a host, or along an axis of a mesh.
#pragma once

namespace lockstep {

struct RankLine {
  int first = 0;
  int stride = 1;
  int count = 1;

  // What the rank with this index on the line is called among all ranks.
  int number(int index) const { return first + stride * index; }
  // The other way round; -1 where the line does not pass through `number`.
  int index(int number) const {
    const int distance = number - first;
    if (distance < 0 || distance % stride != 0 || distance / stride >= count) return -1;
    return distance / stride;
  }
  bool operator==(const RankLine&) const = default;
};

}  // namespace lockstep
