#include "model/hf/generation_config.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
constexpr int64_t kLongest = 16 << 20;
constexpr double kTiny = 1e-300;

Json object_of(std::string_view text, const std::string& path) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw UserError("{}: it is no JSON object", path);
  return json;
}

[[noreturn]] void fail(const std::string& path, const char* key, const Json& value, const char* problem) {
  throw UserError("{}: {} is {}: {}", path, key, value.dump(-1, ' ', false, Json::error_handler_t::replace),
                  problem);
}

const Json* find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool is_token(const Json& value) {
  return value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() <= INT32_MAX;
}

std::vector<int32_t> tokens_in(const Json& object, const char* key, const std::string& path) {
  const Json* value = find(object, key);
  if (value == nullptr) return {};
  const Json all = value->is_array() ? *value : Json::array({*value});
  std::vector<int32_t> tokens;
  for (const Json& one : all) {
    if (!is_token(one)) fail(path, key, *value, "a token, or a list of tokens, is expected");
    tokens.push_back(one.get<int32_t>());
  }
  return tokens;
}

std::optional<double> number_in(const Json& object, const char* key, const std::string& path, double above,
                                double most) {
  const Json* value = find(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !(value->get<double>() > above) || !(value->get<double>() <= most))
    fail(path, key, *value, "a number that cannot be meant");
  return value->get<double>();
}

// What changes the tokens that are chosen, with the value that changes nothing.
void refuse_others(const Json& object, const std::string& path) {
  const std::pair<const char*, Json> neutral[] = {{"num_beams", 1},
                                                  {"no_repeat_ngram_size", 0},
                                                  {"bad_words_ids", nullptr},
                                                  {"min_length", 0},
                                                  {"min_new_tokens", 0},
                                                  {"forced_bos_token_id", nullptr},
                                                  {"suppress_tokens", nullptr},
                                                  {"begin_suppress_tokens", nullptr},
                                                  {"forced_eos_token_id", nullptr},
                                                  {"sequence_bias", nullptr},
                                                  {"guidance_scale", 1},
                                                  {"encoder_repetition_penalty", 1},
                                                  {"penalty_alpha", 0},
                                                  {"exponential_decay_length_penalty", nullptr}};
  for (const auto& [key, value] : neutral)
    if (const Json* given = find(object, key); given != nullptr && *given != value)
      fail(path, key, *given, "this way of choosing tokens is not implemented; remove the key to go without");
}

}  // namespace

GenerationConfig parse_generation_config(std::string_view text, const std::string& where) {
  const Json json = object_of(text, where);
  refuse_others(json, where);
  GenerationConfig config;
  config.end_tokens = tokens_in(json, "eos_token_id", where);
  config.temperature = number_in(json, "temperature", where, -kTiny, 1e6);
  if (config.temperature == 0) config.temperature.reset();  // how some write that nothing is drawn
  config.top_p = number_in(json, "top_p", where, 0, 1);
  config.repetition_penalty = number_in(json, "repetition_penalty", where, 0, 1e6);
  if (const auto top_k = number_in(json, "top_k", where, -1, 1e9))
    config.top_k = static_cast<int64_t>(*top_k);
  return config;
}

GenerationConfig read_generation_config(const std::string& folder) {
  GenerationConfig config;
  const std::filesystem::path where(folder);
  if (const std::string path = (where / "generation_config.json").string(); std::filesystem::exists(path))
    config = parse_generation_config(read_file(path, kLongest), path);
  if (const std::string path = (where / "config.json").string();
      config.end_tokens.empty() && std::filesystem::exists(path))
    config.end_tokens = tokens_in(object_of(read_file(path, kLongest), path), "eos_token_id", path);
  return config;
}

}  // namespace lockstep
