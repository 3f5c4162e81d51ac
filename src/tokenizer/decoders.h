// How a tokenizer.json makes text of tokens.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/json_part.h"

namespace lockstep::tok {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // The text is what the tokens are, joined, after the last step.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

std::unique_ptr<Decoder> make_decoder(JsonPart& part);

}  // namespace lockstep::tok
