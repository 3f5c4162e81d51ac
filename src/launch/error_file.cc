#include "launch/error_file.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace lockstep {

using Json = nlohmann::json;

void write_error_file(const Variables& variables, const std::string& message, int exit_code) noexcept {
  try {
    const auto path = find_variable(variables, "TORCHELASTIC_ERROR_FILE");
    if (!path) return;
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const Json text = {{"message",
                        {{"message", message},
                         {"extraInfo", {{"timestamp", fmt::format("{:.6f}", now)}}},
                         {"errorCode", exit_code}}}};
    write_file(std::string(*path), text.dump(-1, ' ', false, Json::error_handler_t::replace));
  } catch (const std::exception& error) {
    log_warn("cannot write the error file: {}", error.what());
  }
}

std::optional<double> error_time(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{1} << 20;
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    const Json json = Json::parse(read_file(path, kMostBytes));
    const Json& timestamp = json.at("message").at("extraInfo").at("timestamp");
    const double time =
        timestamp.is_string() ? std::stod(timestamp.get<std::string>()) : timestamp.get<double>();
    if (std::isfinite(time)) return time;
  } catch (const std::exception& error) {
    log_warn("{} is no error file: {}", path, error.what());
  }
  return std::nullopt;
}

}  // namespace lockstep
