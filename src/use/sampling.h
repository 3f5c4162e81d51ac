// The next token from a model's logits: the likeliest, or drawn.
//
// The order is that of transformers: the penalty of repetition on everything seen; then, where a token is
// drawn, temperature, top-k, top-p. A draw is a function of (seed, number of the draw) and of the logits
// alone (base/philox.h), so that a text is the same for any number of threads.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct Sampling {
  bool greedy = true;
  double temperature = 1;
  int64_t top_k = 0;  // the so many likeliest, and their equals; 0: all
  double top_p = 1;   // the likeliest that together have this probability, at least one
  double repetition_penalty = 1;
  uint64_t seed = 0;
};

// `logits` are changed; `seen` are the tokens of the text so far, prompt included; `draw` counts the tokens
// that were chosen before. Throws UserError where no logit is a number.
int32_t next_token(std::span<float> logits, const Sampling& sampling, std::span<const int32_t> seen,
                   int64_t draw);

}  // namespace lockstep
