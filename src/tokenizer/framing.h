// What a tokenizer.json puts around the ids of a text or of a pair of texts: its post-processor.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tokenizer/json_part.h"

namespace lockstep::tok {

class Framing {
 public:
  // Nothing around one text, nothing between two.
  Framing();
  explicit Framing(JsonPart& part);

  // One piece of a template: ids of special tokens, or the text with this number.
  struct Piece {
    std::vector<int32_t> special;
    std::optional<int> text;
    int32_t type = 0;
  };
  const std::vector<Piece>& single() const { return single_; }
  const std::vector<Piece>& pair() const { return pair_; }

 private:
  void read(JsonPart& part);
  void read_template(JsonPart& part);

  std::vector<Piece> single_, pair_;
  bool framed_ = false;
};

}  // namespace lockstep::tok
