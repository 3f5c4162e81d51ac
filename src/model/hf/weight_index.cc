#include "model/hf/weight_index.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/printable.h"

namespace lockstep {
namespace {

// A stream of events, so that no tree is built from untrusted text. What lies beside weight_map is passed
// over.
class IndexEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  WeightIndex index;
  std::string failure;
  bool has_map = false;

  bool start_object(size_t) override {
    ++depth_;
    if (depth_ > kDeepest) return fail("is nested too deep");
    if (depth_ == 2 && key_ == "weight_map") {
      if (has_map) return fail("has two weight_maps");
      has_map = in_map_ = true;
    } else if (in_map_) {
      return unexpected("an object");
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == 2) in_map_ = false;
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    key_ = name;
    if (!in_map_) return true;
    if (name.empty()) return fail("has a tensor without a name");
    if (index.files.contains(name)) return fail("names tensor {} twice", printable(name));
    if (index.files.size() == kMostIndexedTensors)
      return fail("names more than {} tensors", kMostIndexedTensors);
    return true;
  }
  bool string(string_t& text) override {
    if (!in_map_) return depth_ > 0 || unexpected("a text");
    if (!is_bare_file_name(text))
      return fail("puts tensor {} into '{}'; files are named without a path, in the folder itself",
                  printable(key_), printable(text));
    if (files_.insert(text).second && files_.size() > kMostWeightFiles)
      return fail("names more than {} files", kMostWeightFiles);
    index.files.emplace(key_, text);
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0 || in_map_) return unexpected("a list");
    return ++depth_ <= kDeepest || fail("is nested too deep");
  }
  bool end_array() override { return --depth_, true; }
  bool null() override { return plain("null"); }
  bool boolean(bool) override { return plain("a boolean"); }
  bool number_unsigned(number_unsigned_t) override { return plain("a number"); }
  bool number_integer(number_integer_t) override { return plain("a number"); }
  bool number_float(number_float_t, const string_t&) override { return plain("a number"); }
  bool binary(binary_t&) override { return unexpected("binary"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail("is not JSON in UTF-8: it breaks at byte {}", position);
  }

 private:
  static constexpr int kDeepest = 16;

  template <typename... Args>
  bool fail(fmt::format_string<Args...> text, Args&&... args) {
    failure = fmt::format(text, std::forward<Args>(args)...);
    return false;
  }
  bool unexpected(const char* what) {
    return fail("has {} where none belongs, near {}", what, printable(key_));
  }
  bool plain(const char* what) { return (depth_ > 0 && !in_map_) || unexpected(what); }

  int depth_ = 0;
  bool in_map_ = false;
  std::string key_;
  std::set<std::string> files_;
};

}  // namespace

bool is_bare_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

WeightIndex parse_weight_index(std::string_view text, const std::string& path) {
  IndexEvents events;
  if (!nlohmann::json::sax_parse(text, &events)) throw UserError("{} {}", path, events.failure);
  if (!events.has_map || events.index.files.empty())
    throw UserError("{} has no weight_map that says which file holds which tensor", path);
  return std::move(events.index);
}

}  // namespace lockstep
