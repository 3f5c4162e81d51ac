// The live line of a run with several workers: worker 0 cannot rewrite the terminal's last line itself, since
// its output goes through the launcher, which shows it under the worker's name. So it says which of its lines
// are to be rewritten: those that begin with a carriage return. It does so only where the launcher asks for
// it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Set for worker 0 where the launcher's standard error is a terminal: its columns.
inline constexpr const char* kLiveColumnsVariable = "LOCKSTEP_LIVE_COLUMNS";

// An empty text takes the live line away.
inline std::string live_line(std::string_view text) { return "\r" + std::string(text) + "\n"; }
// The text, if the line (without its end) is one.
inline std::optional<std::string_view> live_text(std::string_view line) {
  if (!line.starts_with('\r')) return std::nullopt;
  return line.substr(1);
}

}  // namespace lockstep
