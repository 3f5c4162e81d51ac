// A text continued by a model: tokens are chosen one after the other until one ends the text, a word to stop
// at comes up, or there are as many as were asked for.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "use/cached_decoder.h"
#include "use/sampling.h"
#include "use/token_text.h"

namespace lockstep {

struct GenerateOptions {
  int64_t max_tokens = 128;
  Sampling sampling = {};
  std::vector<int32_t> end_tokens = {};  // each ends the text; it is chosen, and not shown
  std::vector<std::string> stop = {};    // texts before which what is shown ends
  int64_t first_draw = 0;                // how many tokens were drawn before, with the same seed
  // Is given text as it becomes final.
  std::function<void(std::string_view text)> show = [](std::string_view) {};
};

enum class Ended : uint8_t { kEndToken, kStop, kLength };
std::string_view name_of(Ended ended);

struct Generated {
  std::vector<int32_t> tokens;  // chosen, the one that ended the text included
  std::string text;             // what was shown
  Ended ended = Ended::kLength;
  int64_t prompt_tokens = 0;
  double prompt_seconds = 0;  // to read the prompt
  double seconds = 0;         // to choose and read all others
};

// Reads the prompt and continues it, as far as the decoder's cache goes.
Generated generate(CachedDecoder& decoder, std::span<const int32_t> prompt, TokenText& text,
                   const GenerateOptions& options);

// Text that ends before any of some texts: what could be the beginning of one is held back.
class StopText {
 public:
  explicit StopText(std::vector<std::string> stop) : stop_(std::move(stop)) {}
  // What can be shown now that this has come. After stopped() nothing more can.
  std::string push(std::string_view text);
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stop_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace lockstep
