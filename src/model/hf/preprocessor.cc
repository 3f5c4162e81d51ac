#include "model/hf/preprocessor.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int64_t kLongest = 1 << 20;
constexpr int64_t kLargestSide = 4096;
constexpr int kDeepest = 8;

// The keys of the file, each read in the one way that it may be written.
class Keys {
 public:
  Keys(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  bool flag(const char* key, bool otherwise) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(key, "write true or false");
    return value->get<bool>();
  }
  std::array<double, 3> colors(const char* key, std::array<double, 3> otherwise) const {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    std::array<double, 3> result{};
    const bool one = value->is_number();  // the same for all colours
    if (!one && (!value->is_array() || value->size() != 3)) fail(key, "write three numbers");
    for (size_t i = 0; i < 3; ++i) {
      const json& each = one ? *value : (*value)[i];
      if (!each.is_number() || !std::isfinite(each.get<double>())) fail(key, "write three numbers");
      result[i] = each.get<double>();
    }
    return result;
  }
  // Pixels: 224, or an object with the given name.
  std::optional<int64_t> side(const char* key, const char* name) const {
    const json* value = find(key);
    if (value == nullptr || !(value->is_object() && value->contains(name))) return std::nullopt;
    return pixels(key, (*value)[name]);
  }
  std::optional<int64_t> number(const char* key) const {
    const json* value = find(key);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    return pixels(key, *value);
  }
  // The square that the key describes, if it does.
  std::optional<int64_t> square(const char* key) const {
    const auto height = side(key, "height"), width = side(key, "width");
    if (height != width) fail(key, "only squares are implemented");
    return height ? height : number(key);
  }
  [[noreturn]] void fail(const char* key, const char* problem) const {
    const json* value = find(key);
    std::string text =
        value == nullptr ? "absent" : value->dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() > 200) text = text.substr(0, 200) + "...";
    throw UserError("{}: {} is {}: {}", where_, key, text, problem);
  }

 private:
  int64_t pixels(const char* key, const json& value) const {
    if (!value.is_number_integer() || value < 1 || value > kLargestSide)
      fail(key, "a side has 1 to 4096 pixels");
    return value.get<int64_t>();
  }

  const json& object_;
  std::string where_;
};

void read_size(const Keys& keys, HfPreprocessor& result) {
  if (!keys.flag("do_resize", true))
    keys.fail("do_resize", "images that are not resized are not implemented");
  const bool crops = keys.flag("do_center_crop", false);
  if (const auto short_side = keys.side("size", "shortest_edge"); short_side || crops) {
    result.short_side = short_side ? *short_side : keys.square("size").value_or(224);
    const auto cut = crops ? keys.square("crop_size") : short_side;
    if (!cut) keys.fail("crop_size", "say how many pixels a side are taken from the middle");
    if (*cut > result.short_side)
      keys.fail("crop_size", "it is more than the image's short side is scaled to");
    result.size = *cut;
    result.stretched = false;
    return;
  }
  const auto square = keys.square("size");
  if (!square && keys.find("size") != nullptr)
    keys.fail("size", "write a number, {height, width} or {shortest_edge}");
  result.size = square.value_or(224);
}

}  // namespace

HfPreprocessor parse_preprocessor(std::string_view text, const std::string& where) {
  // What is nested deeper than any such file is left out, and with it what it is part of.
  const auto shallow = [](int depth, json::parse_event_t, const json&) { return depth <= kDeepest; };
  const json tree = json::parse(text, shallow, false);
  if (!tree.is_object()) throw UserError("{} is not a JSON object", where);
  const Keys keys(tree, where);
  HfPreprocessor result{.path = where};
  read_size(keys, result);
  if (!keys.flag("do_rescale", true)) keys.fail("do_rescale", "colours from 0 to 255 are not implemented");
  if (const json* factor = keys.find("rescale_factor");
      factor != nullptr && (!factor->is_number() || std::fabs(factor->get<double>() * 255 - 1) > 1e-6))
    keys.fail("rescale_factor", "only 1/255 is implemented");
  if (!keys.flag("do_normalize", true)) {
    result.mean = {0, 0, 0};
    result.deviation = {1, 1, 1};
    return result;
  }
  result.mean = keys.colors("image_mean", result.mean);
  result.deviation = keys.colors("image_std", result.deviation);
  for (const double mean : result.mean)
    if (!(mean >= 0 && mean <= 1)) keys.fail("image_mean", "means of colours lie in [0, 1]");
  for (const double deviation : result.deviation)
    if (!(deviation > 0 && deviation <= 1)) keys.fail("image_std", "deviations of colours lie in (0, 1]");
  return result;
}

std::optional<HfPreprocessor> read_preprocessor(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "preprocessor_config.json").string();
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return std::nullopt;
  return parse_preprocessor(read_file(path, kLongest), path);
}

}  // namespace lockstep
