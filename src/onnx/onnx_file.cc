#include "onnx/onnx_file.h"

#include <algorithm>
#include <memory>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/proto_writer.h"
#include "base/version.h"

namespace lockstep {
namespace {

// Field numbers of onnx.proto, by message.
namespace model_field {
enum : uint8_t {
  kIrVersion = 1,
  kProducer = 2,
  kProducerVersion = 3,
  kGraph = 7,
  kOpset = 8,
  kMetadata = 14
};
}
namespace opset_field {
enum : uint8_t { kDomain = 1, kVersion = 2 };
}
namespace graph_field {
enum : uint8_t { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
}
namespace node_field {
enum : uint8_t { kInput = 1, kOutput = 2, kName = 3, kType = 4, kAttribute = 5 };
}
namespace attribute_field {
enum : uint8_t { kName = 1, kFloat = 2, kInt = 3, kText = 4, kInts = 8, kType = 20 };
enum : uint8_t { kTypeFloat = 1, kTypeInt = 2, kTypeText = 3, kTypeInts = 7 };
}  // namespace attribute_field
namespace tensor_field {
enum : uint8_t { kDims = 1, kType = 2, kName = 8, kRaw = 9, kExternal = 13, kLocation = 14 };
constexpr int64_t kLocationExternal = 1;
}  // namespace tensor_field
namespace port_field {  // ValueInfoProto, TypeProto, its Tensor, TensorShapeProto and its Dimension
enum : uint8_t { kName = 1, kType = 2 };
enum : uint8_t { kTensor = 1, kElement = 1, kShape = 2, kDim = 1, kValue = 1, kParam = 2 };
}  // namespace port_field

// Pieces in which weights go to the disk.
constexpr int64_t kPiece = int64_t{1} << 20;
// Where each weight begins in a file of its own: runtimes map it into memory.
constexpr int64_t kDataAlignment = 4096;

std::string entry(std::string_view key, std::string_view value) {
  return ProtoWriter().add_bytes(1, key).add_bytes(2, value).bytes();
}

std::string attribute_bytes(const OnnxAttribute& attribute) {
  using namespace attribute_field;
  ProtoWriter out;
  out.add_bytes(kName, attribute.name);
  if (const auto* whole = std::get_if<int64_t>(&attribute.value)) {
    out.add_int(kInt, *whole).add_int(kType, kTypeInt);
  } else if (const auto* number = std::get_if<float>(&attribute.value)) {
    out.add_float(kFloat, *number).add_int(kType, kTypeFloat);
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    out.add_bytes(kText, *text).add_int(kType, kTypeText);
  } else {
    for (const int64_t each : std::get<std::vector<int64_t>>(attribute.value)) out.add_int(kInts, each);
    out.add_int(kType, kTypeInts);
  }
  return out.bytes();
}

std::string node_bytes(const OnnxNode& node) {
  ProtoWriter out;
  for (const std::string& input : node.inputs) out.add_bytes(node_field::kInput, input);
  for (const std::string& output : node.outputs) out.add_bytes(node_field::kOutput, output);
  // A node's name is for messages of runtimes; that of its result says most.
  out.add_bytes(node_field::kName, node.outputs.at(0)).add_bytes(node_field::kType, node.type);
  for (const OnnxAttribute& attribute : node.attributes)
    out.add_bytes(node_field::kAttribute, attribute_bytes(attribute));
  return out.bytes();
}

std::string port_bytes(const OnnxPort& port) {
  using namespace port_field;
  ProtoWriter shape;
  for (const OnnxDim& dim : port.dims) {
    ProtoWriter extent;
    if (!dim.batch)
      extent.add_int(kValue, dim.extent);
    else
      extent.add_bytes(
          kParam, dim.extent == 1 ? std::string(kOnnxBatch) : fmt::format("{}*{}", dim.extent, kOnnxBatch));
    shape.add_bytes(kDim, extent.bytes());
  }
  const std::string tensor = ProtoWriter()
                                 .add_int(kElement, static_cast<int64_t>(port.type))
                                 .add_bytes(kShape, shape.bytes())
                                 .bytes();
  const std::string type = ProtoWriter().add_bytes(kTensor, tensor).bytes();
  return ProtoWriter().add_bytes(kName, port.name).add_bytes(kType, type).bytes();
}

ProtoWriter tensor_head(const std::string& name, OnnxType type, const std::vector<int64_t>& dims) {
  ProtoWriter out;
  for (const int64_t extent : dims) out.add_int(tensor_field::kDims, extent);
  out.add_int(tensor_field::kType, static_cast<int64_t>(type)).add_bytes(tensor_field::kName, name);
  return out;
}

// One weight's initializer: what stands before its bytes, and how many of these follow inline.
struct WeightRecord {
  std::string head;
  int64_t inline_bytes = 0;

  int64_t bytes() const { return static_cast<int64_t>(head.size()) + inline_bytes; }
};

int64_t aligned(int64_t offset) { return (offset + kDataAlignment - 1) / kDataAlignment * kDataAlignment; }

WeightRecord record_of(const OnnxWeight& weight, const OnnxFileOptions& options, int64_t& offset) {
  ProtoWriter head = tensor_head(weight.name, onnx_type(weight.dtype), weight.dims);
  if (options.data_name.empty()) {
    head.begin_bytes(tensor_field::kRaw, static_cast<uint64_t>(weight.bytes()));
    return {head.bytes(), weight.bytes()};
  }
  offset = aligned(offset);
  head.add_bytes(tensor_field::kExternal, entry("location", options.data_name))
      .add_bytes(tensor_field::kExternal, entry("offset", std::to_string(offset)))
      .add_bytes(tensor_field::kExternal, entry("length", std::to_string(weight.bytes())))
      .add_int(tensor_field::kLocation, tensor_field::kLocationExternal);
  offset += weight.bytes();
  return {head.bytes(), 0};
}

// All of the graph but the weights.
std::string graph_bytes(const OnnxModel& model) {
  ProtoWriter out;
  for (const OnnxNode& node : model.nodes) out.add_bytes(graph_field::kNode, node_bytes(node));
  out.add_bytes(graph_field::kName, model.name);
  for (const OnnxConstant& constant : model.constants)
    out.add_bytes(graph_field::kInitializer, tensor_head(constant.name, constant.type, constant.dims)
                                                 .add_bytes(tensor_field::kRaw, constant.bytes)
                                                 .bytes());
  for (const OnnxPort& port : model.inputs) out.add_bytes(graph_field::kInput, port_bytes(port));
  for (const OnnxPort& port : model.outputs) out.add_bytes(graph_field::kOutput, port_bytes(port));
  return out.bytes();
}

std::string model_head(const OnnxModel& model) {
  ProtoWriter out;
  out.add_int(model_field::kIrVersion, kOnnxIrVersion)
      .add_bytes(model_field::kProducer, "lockstep")
      .add_bytes(model_field::kProducerVersion, kVersion)
      .add_bytes(model_field::kOpset, ProtoWriter()
                                          .add_bytes(opset_field::kDomain, "")
                                          .add_int(opset_field::kVersion, kOnnxOpset)
                                          .bytes());
  for (const auto& [key, value] : model.metadata) out.add_bytes(model_field::kMetadata, entry(key, value));
  return out.bytes();
}

// [O,KH,KW,I] to [O,I,KH,KW].
void write_channels_first(DurableFile& file, const OnnxWeight& weight, const ReadWeight& read) {
  const auto bytes = static_cast<size_t>(weight.bytes());
  const auto element = static_cast<size_t>(size_of(weight.dtype));
  const auto outputs = static_cast<size_t>(weight.dims[0]), channels = static_cast<size_t>(weight.dims[1]);
  const auto taps = static_cast<size_t>(weight.dims[2] * weight.dims[3]);
  std::vector<std::byte> from(bytes), to(bytes);
  read(weight, 0, from);
  for (size_t o = 0; o < outputs; ++o)
    for (size_t tap = 0; tap < taps; ++tap)
      for (size_t i = 0; i < channels; ++i)
        std::copy_n(&from[((o * taps + tap) * channels + i) * element], element,
                    &to[((o * channels + i) * taps + tap) * element]);
  file.write(to);
}

void write_weight(DurableFile& file, const OnnxWeight& weight, const ReadWeight& read) {
  if (weight.bytes() == 0) return;
  if (weight.channels_first) return write_channels_first(file, weight, read);
  const auto buffer =
      std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(std::min(kPiece, weight.bytes())));
  for (int64_t first = 0; first < weight.bytes(); first += kPiece) {
    const std::span piece(buffer.get(), static_cast<size_t>(std::min(kPiece, weight.bytes() - first)));
    read(weight, first, piece);
    file.write(piece);
  }
}

void write_data(const OnnxModel& model, const OnnxFileOptions& options, const ReadWeight& read) {
  DurableFile file(options.data_path);
  for (const OnnxWeight& weight : model.weights) {
    const std::string gap(static_cast<size_t>(aligned(file.bytes()) - file.bytes()), '\0');
    file.write(gap);
    write_weight(file, weight, read);
  }
  file.finish();
}

}  // namespace

void write_onnx(const OnnxModel& model, const OnnxFileOptions& options, const ReadWeight& read) {
  const std::string rest = graph_bytes(model);
  std::vector<WeightRecord> records;
  std::vector<std::string> openings;  // key and length of each initializer
  auto size = static_cast<int64_t>(rest.size());
  int64_t offset = 0;
  for (const OnnxWeight& weight : model.weights) {
    LOCKSTEP_CHECK(is_floating(weight.dtype), "{} is {}", weight.name, name_of(weight.dtype));
    records.push_back(record_of(weight, options, offset));
    ProtoWriter opening;
    opening.begin_bytes(graph_field::kInitializer, static_cast<uint64_t>(records.back().bytes()));
    openings.push_back(opening.bytes());
    size += static_cast<int64_t>(openings.back().size()) + records.back().bytes();
  }
  if (!options.data_name.empty()) write_data(model, options, read);
  DurableFile file(options.path);
  file.write(model_head(model));
  ProtoWriter opening;
  opening.begin_bytes(model_field::kGraph, static_cast<uint64_t>(size));
  file.write(opening.bytes());
  file.write(rest);
  for (size_t i = 0; i < records.size(); ++i) {
    file.write(openings[i]);
    file.write(records[i].head);
    if (records[i].inline_bytes > 0) write_weight(file, model.weights[i], read);
  }
  file.finish();
}

}  // namespace lockstep
