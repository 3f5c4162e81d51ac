#include "observe/summary.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "observe/record_json.h"

namespace lockstep {

void write_summary(const std::string& path, const RunSummary& summary) {
  write_file(path, to_json_text(summary));
}

RunSummary parse_summary(std::string_view text, const std::string& name) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (object.is_discarded())
    throw UserError("{}: this is no JSON; it was damaged after it was written", name);
  return summary_from_json(object, name);
}

RunSummary read_summary(const std::string& path) {
  return parse_summary(read_file(path, int64_t{1} << 24), path);
}

std::string utc_time(int64_t unix_seconds) {
  const std::time_t seconds = unix_seconds;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace lockstep
