#include "safetensors/writer.h"

#include "base/error.h"

namespace lockstep {

SafetensorsWriter::SafetensorsWriter(const std::string& folder, std::string name,
                                     std::vector<TensorSpec> tensors, SafetensorsMetadata metadata)
    : header_(plan_safetensors(std::move(tensors), std::move(metadata))),
      file_(folder + "/" + name),
      record_{std::move(name), 0, "", {}} {
  file_.write(safetensors_header_bytes(header_));
  close_full_tensors();
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const size_t current = record_.tensors.size();
  LOCKSTEP_CHECK(current < tensors().size(), "{} takes no more bytes: all tensors are written", record_.name);
  const TensorEntry& entry = tensors()[current];
  const int64_t left = entry.end - file_.bytes();
  LOCKSTEP_CHECK(static_cast<int64_t>(bytes.size()) <= left, "{}: {} bytes for tensor {}, which lacks {}",
                 record_.name, bytes.size(), entry.tensor.name, left);
  fold_.update(bytes);
  file_.write(bytes);
  close_full_tensors();
}

void SafetensorsWriter::close_full_tensors() {
  for (size_t i = record_.tensors.size(); i < tensors().size() && tensors()[i].end == file_.bytes(); ++i) {
    record_.tensors.push_back(
        {tensors()[i].tensor.name, tensors()[i].begin, tensors()[i].end, fold_.value()});
    fold_ = Fold();
  }
}

FileRecord SafetensorsWriter::finish() {
  const size_t written = record_.tensors.size();
  LOCKSTEP_CHECK(written == tensors().size(), "{}: tensor {} is not complete", record_.name,
                 tensors()[written].tensor.name);
  record_.bytes = file_.bytes();
  record_.sha256 = file_.finish();
  return std::move(record_);
}

}  // namespace lockstep
