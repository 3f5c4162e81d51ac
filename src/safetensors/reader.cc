#include "safetensors/reader.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/nearest.h"

namespace lockstep {
namespace {

SafetensorsHeader read_header(const FileReader& file) {
  std::vector<std::byte> bytes(static_cast<size_t>(std::min(kSafetensorsPrefix, file.bytes())));
  file.read(0, bytes);
  bytes.resize(static_cast<size_t>(safetensors_data_begin(bytes, file.bytes(), file.path())));
  file.read(0, bytes);
  return parse_safetensors_header(bytes, file.bytes(), file.path());
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::string& path) : file_(path), header_(read_header(file_)) {
  by_name_.resize(tensors().size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::ranges::sort(by_name_, {}, [&](size_t i) -> const std::string& { return tensors()[i].tensor.name; });
}

const TensorEntry* SafetensorsReader::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      by_name_, name, {}, [&](size_t i) { return std::string_view(tensors()[i].tensor.name); });
  return found == by_name_.end() || tensors()[*found].tensor.name != name ? nullptr : &tensors()[*found];
}

const TensorEntry& SafetensorsReader::at(std::string_view name) const {
  if (const TensorEntry* entry = find(name)) return *entry;
  std::vector<std::string_view> names;
  for (const TensorEntry& entry : tensors()) names.push_back(entry.tensor.name);
  constexpr size_t kFewNames = 16;
  std::string help = suggestion(name, names);
  if (names.size() > kFewNames && help.starts_with("known"))
    help = fmt::format("it has {} others", names.size());
  throw UserError("{} has no tensor {}; {}", file_.path(), name, help);
}

void SafetensorsReader::read(const TensorEntry& entry, std::span<std::byte> into, int64_t first) const {
  LOCKSTEP_CHECK(first >= 0 && first + static_cast<int64_t>(into.size()) <= entry.tensor.bytes(),
                 "{} bytes from {} on of tensor {} of {}", into.size(), first, entry.tensor.name,
                 entry.tensor.bytes());
  file_.read(entry.begin + first, into);
}

FileMapping SafetensorsReader::map(const TensorEntry& entry) const {
  return file_.map(entry.begin, entry.tensor.bytes());
}

FileMapping SafetensorsReader::map(const TensorEntry& entry, int64_t first, int64_t bytes) const {
  LOCKSTEP_CHECK(first >= 0 && bytes >= 0 && first + bytes <= entry.tensor.bytes(),
                 "{} bytes from {} on of tensor {} of {}", bytes, first, entry.tensor.name,
                 entry.tensor.bytes());
  return file_.map(entry.begin + first, bytes);
}

const TensorEntry& SafetensorsReader::at(const TensorSpec& expected) const {
  const TensorEntry& entry = at(expected.name);
  if (entry.tensor != expected)
    throw UserError("{}: tensor {} is {}{}, but {}{} is needed", file_.path(), expected.name,
                    name_of(entry.tensor.dtype), to_string(entry.tensor.shape), name_of(expected.dtype),
                    to_string(expected.shape));
  return entry;
}

void SafetensorsReader::read(const TensorSpec& expected, std::span<std::byte> into) const {
  const TensorEntry& entry = at(expected);
  LOCKSTEP_CHECK(static_cast<int64_t>(into.size()) == entry.tensor.bytes(), "{} bytes for tensor {} of {}",
                 into.size(), entry.tensor.name, entry.tensor.bytes());
  read(entry, into);
}

}  // namespace lockstep
