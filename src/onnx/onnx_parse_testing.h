// Reads an ONNX file back for the tests: the fields that we write, by their numbers alone, so that a mistake
// in the writer is not made again by the reader. Throws std::runtime_error for anything else.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::testing {

// The fields of one message, in their order.
struct ProtoField {
  int number = 0;
  uint64_t value = 0;           // of wire types 0 and 5
  std::string_view bytes = {};  // of wire type 2
};

inline std::vector<ProtoField> proto_fields(std::string_view message) {
  std::vector<ProtoField> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    ProtoField field{static_cast<int>(key >> 3)};
    if ((key & 7) == 0) {
      field.value = varint();
    } else if ((key & 7) == 2) {
      const uint64_t size = varint();
      if (size > message.size() - at) throw std::runtime_error("a field is longer than its message");
      field.bytes = message.substr(at, size);
      at += size;
    } else if ((key & 7) == 5) {
      uint32_t bits = 0;
      std::memcpy(&bits, message.substr(at, 4).data(), 4);
      field.value = bits;
      at += 4;
    } else {
      throw std::runtime_error("a wire type that ONNX has no use for");
    }
    fields.push_back(field);
  }
  return fields;
}

struct ParsedTensor {
  std::vector<int64_t> dims;
  int64_t type = 0;
  std::string bytes;
  std::map<std::string, std::string> external;
};

struct ParsedAttribute {
  int64_t type = 0, whole = 0;
  float number = 0;
  std::string text;
  std::vector<int64_t> wholes;
};

struct ParsedNode {
  std::string type, name;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, ParsedAttribute> attributes;

  int64_t whole(const std::string& key, int64_t otherwise) const {
    return attributes.contains(key) ? attributes.at(key).whole : otherwise;
  }
  std::vector<int64_t> wholes(const std::string& key) const { return attributes.at(key).wholes; }
};

struct ParsedPort {
  std::string name;
  int64_t type = 0;
  std::vector<std::string> dims;  // numbers, or the names of open ones
};

struct ParsedOnnx {
  int64_t ir_version = 0, opset = 0;
  std::string producer, name;
  std::vector<ParsedNode> nodes;
  std::map<std::string, ParsedTensor> tensors;
  std::vector<ParsedPort> inputs, outputs;
  std::map<std::string, std::string> metadata;

  int64_t count(const std::string& type) const {
    int64_t found = 0;
    for (const ParsedNode& node : nodes) found += node.type == type ? 1 : 0;
    return found;
  }
};

inline std::pair<std::string, std::string> parse_entry(std::string_view message) {
  std::pair<std::string, std::string> entry;
  for (const ProtoField& field : proto_fields(message))
    (field.number == 1 ? entry.first : entry.second) = field.bytes;
  return entry;
}

inline ParsedNode parse_node(std::string_view message) {
  ParsedNode node;
  for (const ProtoField& field : proto_fields(message)) {
    if (field.number == 1) node.inputs.emplace_back(field.bytes);
    if (field.number == 2) node.outputs.emplace_back(field.bytes);
    if (field.number == 3) node.name = field.bytes;
    if (field.number == 4) node.type = field.bytes;
    if (field.number != 5) continue;
    ParsedAttribute attribute;
    std::string name;
    for (const ProtoField& part : proto_fields(field.bytes)) {
      if (part.number == 1) name = part.bytes;
      if (part.number == 2) attribute.number = std::bit_cast<float>(static_cast<uint32_t>(part.value));
      if (part.number == 3) attribute.whole = static_cast<int64_t>(part.value);
      if (part.number == 4) attribute.text = part.bytes;
      if (part.number == 8) attribute.wholes.push_back(static_cast<int64_t>(part.value));
      if (part.number == 20) attribute.type = static_cast<int64_t>(part.value);
    }
    node.attributes[name] = attribute;
  }
  return node;
}

inline void parse_tensor(std::string_view message, ParsedOnnx& model) {
  ParsedTensor tensor;
  std::string name;
  for (const ProtoField& field : proto_fields(message)) {
    if (field.number == 1) tensor.dims.push_back(static_cast<int64_t>(field.value));
    if (field.number == 2) tensor.type = static_cast<int64_t>(field.value);
    if (field.number == 8) name = field.bytes;
    if (field.number == 9) tensor.bytes = field.bytes;
    if (field.number == 13) tensor.external.insert(parse_entry(field.bytes));
  }
  if (!model.tensors.emplace(name, tensor).second) throw std::runtime_error("two tensors are named " + name);
}

inline ParsedPort parse_port(std::string_view message) {
  ParsedPort port;
  for (const ProtoField& field : proto_fields(message)) {
    if (field.number == 1) port.name = field.bytes;
    if (field.number != 2) continue;
    for (const ProtoField& part : proto_fields(proto_fields(field.bytes).at(0).bytes)) {
      if (part.number == 1) port.type = static_cast<int64_t>(part.value);
      if (part.number != 2) continue;
      for (const ProtoField& dim : proto_fields(part.bytes)) {
        const ProtoField extent = proto_fields(dim.bytes).at(0);
        port.dims.push_back(extent.number == 1 ? std::to_string(extent.value) : std::string(extent.bytes));
      }
    }
  }
  return port;
}

inline ParsedOnnx parse_onnx(std::string_view file) {
  ParsedOnnx model;
  for (const ProtoField& field : proto_fields(file)) {
    if (field.number == 1) model.ir_version = static_cast<int64_t>(field.value);
    if (field.number == 2) model.producer = field.bytes;
    if (field.number == 8) model.opset = static_cast<int64_t>(proto_fields(field.bytes).back().value);
    if (field.number == 14) model.metadata.insert(parse_entry(field.bytes));
    if (field.number != 7) continue;
    for (const ProtoField& part : proto_fields(field.bytes)) {
      if (part.number == 1) model.nodes.push_back(parse_node(part.bytes));
      if (part.number == 2) model.name = part.bytes;
      if (part.number == 5) parse_tensor(part.bytes, model);
      if (part.number == 11) model.inputs.push_back(parse_port(part.bytes));
      if (part.number == 12) model.outputs.push_back(parse_port(part.bytes));
    }
  }
  return model;
}

}  // namespace lockstep::testing
