// What a tokenizer.json does to a text before it is cut: normal forms, lower case, spaces, replacements.
#pragma once
#include <memory>
#include <string>

#include "tokenizer/json_part.h"

namespace lockstep::tok {

// A text on its way through the normalizers.
struct NormalText {
  std::string text;
  // Whether its first character comes from the first one of the original: Metaspace asks for it.
  bool from_start = true;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalText& text) const = 0;
};

std::unique_ptr<Normalizer> make_normalizer(JsonPart& part);

}  // namespace lockstep::tok
