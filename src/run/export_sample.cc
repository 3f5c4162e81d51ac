#include "run/export_sample.h"

#include <map>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/philox.h"
#include "onnx/forward.h"
#include "runtime/compile.h"
#include "safetensors/writer.h"

namespace lockstep {
namespace {

constexpr uint64_t kSeed = 1;

struct Tensors {
  std::vector<TensorSpec> specs;
  std::map<std::string, std::vector<std::byte>> bytes;

  // As the file has it: floats as they are, whole numbers as int64.
  void add(const std::string& name, const Type& type, const std::byte* data) {
    const DType stored = is_floating(type.dtype) ? type.dtype : DType::kI64;
    std::vector<std::byte>& to = bytes[name];
    to.resize(static_cast<size_t>(type.shape.numel() * size_of(stored)));
    for (int64_t i = 0; i < type.shape.numel(); ++i)
      write_element(stored, to.data(), i, read_element(type.dtype, data, i));
    specs.push_back({name, stored, type.shape});
  }
};

std::vector<std::byte> drawn(const Model& model, const std::string& name, const Type& type, uint64_t stream) {
  const Philox random(kSeed, stream);
  const auto bound = static_cast<double>(forward_input_bound(model, name));
  const int64_t width = type.shape.rank() > 1 ? type.shape[-1] : 1;
  std::vector<std::byte> values(static_cast<size_t>(type.bytes()));
  for (int64_t i = 0; i < type.shape.numel(); ++i) {
    const auto at = static_cast<uint64_t>(i);
    double value = 0;
    if (is_floating(type.dtype))
      value = static_cast<double>(random.normal(at));
    else if (name == "attention_mask")  // rows of every length, from one token on
      value = i % width <= i / width % width ? 1 : 0;
    else
      value = static_cast<double>(static_cast<int64_t>(static_cast<double>(random.uniform(at)) * bound));
    write_element(type.dtype, values.data(), i, value);
  }
  return values;
}

}  // namespace

void write_sample(const TrainedModel& model, int64_t rows, const std::string& folder,
                  const std::string& file) {
  const Model evaluation = model.evaluation(rows);
  const auto backend = make_cpu_backend(1);
  PassOptions passes;
  passes.disabled.emplace_back("autodiff");
  const Graph forward = forward_graph(evaluation);
  const auto executable = compile(forward, *backend, passes);
  const Graph& graph = executable->graph();
  Tensors tensors;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::map<std::string, TensorSpec> weights;
  for (const TensorSpec& weight : model.weights()) weights.emplace(weight.name, weight);
  for (const GraphInput& input : graph.inputs()) {
    const std::string& name = graph.name(input.value);
    const Type& type = graph.type(input.value);
    std::vector<std::byte> bytes;
    if (input.role == Role::kInput) {
      bytes = drawn(evaluation, name, type, buffers.size());
      tensors.add(name, type, bytes.data());
    } else {
      bytes.resize(static_cast<size_t>(type.bytes()));
      model.read(weights.at(name), 0, bytes);
    }
    buffers.push_back(backend->allocate(type.bytes()));
    backend->upload(buffers.back()->data(), bytes.data(), type.bytes());
    executable->bind(name, buffers.back()->data());
  }
  executable->run();
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value value = graph.outputs()[i].value;
    std::vector<std::byte> bytes(static_cast<size_t>(graph.type(value).bytes()));
    backend->download(bytes.data(), executable->output(i), graph.type(value).bytes());
    // Passes may have made another value of it, with a name of its own.
    tensors.add(forward.name(forward.outputs()[i].value), graph.type(value), bytes.data());
  }
  SafetensorsWriter writer(folder, file, tensors.specs, {});
  for (const TensorEntry& entry : writer.tensors()) writer.append(tensors.bytes.at(entry.tensor.name));
  writer.finish();
}

}  // namespace lockstep
