// The text of a model's tokens, by the files that come with it.
#pragma once
#include <memory>
#include <string>

#include "use/generating_model.h"
#include "use/token_text.h"

namespace lockstep {

// `ids`: numbers of tokens. Else by a tokenizer (`tokenizer`, or that of the model's folder); a model of 256
// tokens without one writes bytes. Throws UserError where there is none.
std::unique_ptr<TokenText> open_token_text(const GeneratingModel& model, const std::string& tokenizer,
                                           bool ids);

}  // namespace lockstep
