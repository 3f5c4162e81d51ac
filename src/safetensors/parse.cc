// Reading of safetensors headers as a stream of JSON events, so that no tree is built from untrusted text:
// anything that is not the format's own grammar ends the parse where it stands.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "safetensors/header.h"

namespace lockstep {
namespace {

class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;  // offsets count from the start of the data
  std::string failure;

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart: place_ = Place::kTop; return true;
      case Place::kTop:
        place_ = key_ == "__metadata__" ? Place::kMetadata : Place::kTensor;
        fields_.clear();
        shape_.clear();
        offsets_.clear();
        return true;
      default: return unexpected("an object");
    }
  }

  bool key(string_t& name) override {
    key_ = name;
    std::set<std::string>& seen = place_ == Place::kTop ? names_ : fields_;
    if (!seen.insert(name).second) return fail("names {} twice", name);
    if (place_ == Place::kTop && name.empty()) return fail("has a tensor without a name");
    if (place_ == Place::kTop) tensor_.name = name;
    if (place_ == Place::kTensor && name != "dtype" && name != "shape" && name != "data_offsets")
      return fail("has an unknown field {} for tensor {}", name, tensor_.name);
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      header.metadata.emplace(key_, text);
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return unexpected("a string");
    const DType* dtype = find_safetensors_dtype(text);
    if (dtype == nullptr)
      return fail("gives tensor {} the element type {}; known are F32, BF16, F16, I64, I32, U8, BOOL",
                  tensor_.name, text);
    tensor_.dtype = *dtype;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") return unexpected("a list");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return unexpected("a number");
    if (value > static_cast<uint64_t>(INT64_MAX))
      return fail("has the number {} for tensor {}", value, tensor_.name);
    std::vector<int64_t>& list = place_ == Place::kShape ? shape_ : offsets_;
    if (list.size() == Shape::kMaxRank)
      return fail("gives tensor {} more than {} axes", tensor_.name, Shape::kMaxRank);
    list.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && !end_tensor()) return false;
    place_ = place_ == Place::kTop ? Place::kDone : Place::kTop;
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override { return fail("has the negative number {}", value); }
  bool number_float(number_float_t, const string_t& text) override { return fail("has the number {}", text); }
  bool binary(binary_t&) override { return unexpected("binary"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail("is not JSON in UTF-8: it breaks at byte {}", position + kSafetensorsPrefix);
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kDone };

  template <typename... Args>
  bool fail(fmt::format_string<Args...> text, Args&&... args) {
    failure = fmt::format(text, std::forward<Args>(args)...);
    return false;
  }
  bool unexpected(const char* what) { return fail("has {} where none belongs, near {}", what, key_); }

  bool end_tensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!fields_.contains(field)) return fail("does not give the {} of tensor {}", field, tensor_.name);
    if (offsets_.size() != 2) return fail("needs two data_offsets for tensor {}", tensor_.name);
    try {
      tensor_.shape = Shape(std::span<const int64_t>(shape_));
    } catch (const UserError& error) {
      return fail("has an impossible shape for tensor {}: {}", tensor_.name, error.what());
    }
    header.tensors.push_back({tensor_, offsets_[0], offsets_[1]});
    return true;
  }

  Place place_ = Place::kStart;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> fields_;
  TensorSpec tensor_;
  std::vector<int64_t> shape_;
  std::vector<int64_t> offsets_;
};

// Every byte of the data belongs to one tensor: nothing overlaps, nothing is hidden in a gap.
void check_layout(const SafetensorsHeader& header, int64_t data_bytes, const std::string& path) {
  int64_t cursor = 0;
  for (const auto& [tensor, begin, end] : header.tensors) {
    if (end < begin || end > data_bytes)
      throw UserError("{}: tensor {} has bytes {} to {} of data that ends at {}", path, tensor.name, begin,
                      end, data_bytes);
    if (end - begin != tensor.bytes())
      throw UserError("{}: tensor {} is {}{} and needs {} bytes, but has {}", path, tensor.name,
                      name_of(tensor.dtype), to_string(tensor.shape), tensor.bytes(), end - begin);
    if (begin != cursor)
      throw UserError(
          "{}: tensor {} begins at byte {} of the data; {} expected, since tensors follow each other "
          "without gap or overlap",
          path, tensor.name, begin, cursor);
    cursor = end;
  }
  if (cursor != data_bytes)
    throw UserError("{}: the tensors end at byte {} of the data, the file at {}", path, cursor, data_bytes);
}

}  // namespace

int64_t safetensors_data_begin(std::span<const std::byte> prefix, int64_t file_bytes,
                               const std::string& path) {
  uint64_t length = 0;
  if (file_bytes < kSafetensorsPrefix || prefix.size() < sizeof(length))
    throw UserError("{}: {} bytes are too few for a safetensors file", path, file_bytes);
  std::memcpy(&length, prefix.data(), sizeof(length));
  if (length > static_cast<uint64_t>(kMaxSafetensorsText))
    throw UserError("{}: a header of {} bytes is announced; safetensors allows {}", path, length,
                    kMaxSafetensorsText);
  const int64_t data_begin = kSafetensorsPrefix + static_cast<int64_t>(length);
  if (data_begin > file_bytes)
    throw UserError("{}: the header should end at byte {}, but the file ends at {}", path, data_begin,
                    file_bytes);
  return data_begin;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes, int64_t file_bytes,
                                           const std::string& path) {
  const int64_t data_begin = safetensors_data_begin(bytes, file_bytes, path);
  LOCKSTEP_CHECK(static_cast<int64_t>(bytes.size()) == data_begin, "{} header bytes given", bytes.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kSafetensorsPrefix,
                              bytes.size() - kSafetensorsPrefix);
  // The format demands it, and it keeps a byte-order mark out, which the JSON reader would skip.
  if (text.empty() || text.front() != '{') throw UserError("{}: the header does not begin with {{", path);
  HeaderEvents events;
  if (!nlohmann::json::sax_parse(text, &events)) throw UserError("{}: the header {}", path, events.failure);

  SafetensorsHeader header = std::move(events.header);
  std::ranges::stable_sort(header.tensors, {},
                           [](const TensorEntry& entry) { return std::pair(entry.begin, entry.end); });
  check_layout(header, file_bytes - data_begin, path);
  header.data_begin = data_begin;
  for (TensorEntry& entry : header.tensors) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return header;
}

}  // namespace lockstep
