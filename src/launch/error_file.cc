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
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
    const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(now - seconds);
    // torchrun reads whole seconds, and ends with an error of its own for anything else.
    const Json time = {{"timestamp", std::to_string(seconds.count())}, {"microseconds", rest.count()}};
    const Json text = {{"message", {{"message", message}, {"extraInfo", time}, {"errorCode", exit_code}}}};
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
    const Json& info = json.at("message").at("extraInfo");
    const Json& timestamp = info.at("timestamp");
    const double seconds =
        timestamp.is_string() ? std::stod(timestamp.get<std::string>()) : timestamp.get<double>();
    const double time = seconds + info.value("microseconds", 0.0) * 1e-6;
    if (std::isfinite(time)) return time;
  } catch (const std::exception& error) {
    log_warn("{} is no error file: {}", path, error.what());
  }
  return std::nullopt;
}

}  // namespace lockstep
