// Reads tensors of a safetensors file, whoever wrote it, after its header was checked.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/file_reader.h"
#include "safetensors/header.h"

namespace lockstep {

class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path);

  const SafetensorsHeader& header() const { return header_; }
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Throws UserError that offers the nearest name.
  const TensorEntry& at(std::string_view name) const;
  // The tensor named so if it has that element type and shape, else throws UserError that shows both.
  const TensorEntry& at(const TensorSpec& expected) const;
  // The bytes of the tensor from `first` on, as many as `into` has.
  void read(const TensorEntry& entry, std::span<std::byte> into, int64_t first = 0) const;
  // All of it.
  void read(const TensorSpec& expected, std::span<std::byte> into) const;
  // The tensor's bytes where the file lies in memory, for one who reads them once.
  FileMapping map(const TensorEntry& entry) const;
  // Bytes [first, first + bytes) of it.
  FileMapping map(const TensorEntry& entry, int64_t first, int64_t bytes) const;

 private:
  const TensorEntry* find(std::string_view name) const;

  FileReader file_;
  SafetensorsHeader header_;
  std::vector<size_t> by_name_;  // indices of the tensors, sorted by name
};

}  // namespace lockstep
