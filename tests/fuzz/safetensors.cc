#include "fuzz/safetensors.h"

#include "base/error.h"
#include "safetensors/header.h"

namespace lockstep::testing {
namespace {

SafetensorsHeader parse(std::span<const std::byte> file, int64_t file_bytes) {
  const int64_t data_begin = safetensors_data_begin(file, file_bytes, "input");
  return parse_safetensors_header(file.first(static_cast<size_t>(data_begin)), file_bytes, "input");
}

}  // namespace

bool check_safetensors(std::string_view file) {
  SafetensorsHeader header;
  try {
    header = parse(std::as_bytes(std::span(file)), static_cast<int64_t>(file.size()));
  } catch (const UserError&) {
    return false;
  }
  std::vector<TensorSpec> tensors;
  int64_t cursor = header.data_begin;
  for (const auto& [tensor, begin, end] : header.tensors) {
    LOCKSTEP_CHECK(begin == cursor && end - begin == tensor.bytes(), "{} lies at {} to {}", tensor.name,
                   begin, end);
    cursor = end;
    tensors.push_back(tensor);
  }
  LOCKSTEP_CHECK(cursor == static_cast<int64_t>(file.size()), "the tensors end at {} of {}", cursor,
                 file.size());

  const SafetensorsHeader planned = plan_safetensors(std::move(tensors), header.metadata);
  const std::string written = safetensors_header_bytes(planned);
  LOCKSTEP_CHECK(static_cast<int64_t>(written.size()) == planned.data_begin,
                 "a header of {} bytes, {} planned", written.size(), planned.data_begin);
  const SafetensorsHeader read = parse(std::as_bytes(std::span(written)), planned.file_bytes());
  LOCKSTEP_CHECK(safetensors_header_bytes(read) == written, "reads back as another header: {}",
                 written.substr(8));
  return true;
}

}  // namespace lockstep::testing
