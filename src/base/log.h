// Log lines on standard error: time, level, text. The level comes from LOCKSTEP_LOG (debug, info, warn,
// error).
#pragma once
#include <fmt/format.h>

#include <string_view>

namespace lockstep {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

void log_line(LogLevel level, std::string_view text);
bool log_enabled(LogLevel level);

template <typename... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(LogLevel::kDebug))
    log_line(LogLevel::kDebug, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warn(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::kWarn, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace lockstep
