#include "use/generate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// How many of the last bytes of `text` are the first ones of `word`, but not all of it.
size_t begun_at_end(std::string_view text, std::string_view word) {
  for (size_t count = std::min(text.size(), word.size() - 1); count > 0; --count)
    if (text.ends_with(word.substr(0, count))) return count;
  return 0;
}

}  // namespace

std::string_view name_of(Ended ended) {
  switch (ended) {
    case Ended::kEndToken: return "end_token";
    case Ended::kStop: return "stop";
    case Ended::kLength: return "length";
  }
  return "";
}

std::string StopText::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t first = std::string::npos, begun = 0;
  for (const std::string& word : stop_) {
    first = std::min(first, held_.find(word));
    begun = std::max(begun, begun_at_end(held_, word));
  }
  stopped_ = first != std::string::npos;
  const std::string shown = held_.substr(0, stopped_ ? first : held_.size() - begun);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopText::finish() { return stopped_ ? std::string() : std::exchange(held_, {}); }

Generated generate(CachedDecoder& decoder, std::span<const int32_t> prompt, TokenText& text,
                   const GenerateOptions& options) {
  Generated result;
  result.prompt_tokens = static_cast<int64_t>(prompt.size());
  StopText stop(options.stop);
  const auto show = [&](const std::string& part) {
    if (part.empty()) return;
    result.text += part;
    options.show(part);
  };
  text.restart();
  auto start = Clock::now();
  std::span<const float> given = decoder.read(prompt);
  result.prompt_seconds = seconds_since(start);
  start = Clock::now();
  const int64_t room = decoder.capacity() - result.prompt_tokens;
  const int64_t most = std::min(options.max_tokens, room + 1);
  for (int64_t n = 0; n < most; ++n) {
    std::vector<float> logits(given.begin(), given.end());
    const int32_t token = next_token(logits, options.sampling, decoder.tokens(), options.first_draw + n);
    result.tokens.push_back(token);
    if (std::ranges::find(options.end_tokens, token) != options.end_tokens.end()) {
      result.ended = Ended::kEndToken;
      break;
    }
    show(stop.push(text.push(token)));
    if (stop.stopped()) {
      result.ended = Ended::kStop;
      break;
    }
    if (n + 1 < most) given = decoder.append(token);
  }
  if (!stop.stopped()) show(stop.push(text.finish()));
  show(stop.finish());
  if (stop.stopped()) result.ended = Ended::kStop;
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace lockstep
