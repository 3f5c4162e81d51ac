// The "model" of a tokenizer.json.
#pragma once
#include <memory>

#include "tokenizer/json_part.h"
#include "tokenizer/model.h"

namespace lockstep::tok {

class Bpe;

struct JsonModel {
  std::unique_ptr<WordModel> model;
  const Bpe* bpe = nullptr;  // the same, if it is one
  bool over_bytes = false;
};

// `byte_level`: what reaches the model went through ByteLevel last.
JsonModel make_model(JsonPart& part, bool byte_level);

}  // namespace lockstep::tok
