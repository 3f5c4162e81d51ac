#include "run/export_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include "base/file.h"
#include "base/new_files.h"
#include "onnx/export_graph.h"
#include "onnx/onnx_file.h"
#include "run/export_description.h"
#include "run/export_sample.h"
#include "safetensors/writer.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string_view ending_of(ExportFormat format) {
  return format == ExportFormat::kOnnx ? ".onnx" : ".safetensors";
}

// Where it goes; without its ending it is what the files beside it begin with.
struct Names {
  std::string file, stem;

  Names(const TrainedModel& model, const ExportOptions& options) {
    const std::string_view ending = ending_of(options.to);
    file = options.out.empty() ? fmt::format("{}{}", model.spec().name, ending) : options.out;
    stem = file.ends_with(ending) ? file.substr(0, file.size() - ending.size()) : file;
  }
};

std::pair<std::string, std::string> folder_and_name(const std::string& path) {
  const fs::path whole(path);
  return {whole.has_parent_path() ? whole.parent_path().string() : ".", whole.filename().string()};
}

OnnxModel to_onnx(const TrainedModel& trained) {
  OnnxModel model = onnx_of([&](int64_t batch) { return trained.evaluation(batch); });
  model.metadata = {{"job", trained.spec().name},
                    {"family", std::string(trained.spec().model.family->name)},
                    {"step", std::to_string(trained.step())},
                    {"identity_sha256", trained.identity().sha256()}};
  return model;
}

ReadWeight reader_of(const TrainedModel& trained) {
  std::map<std::string, TensorSpec> weights;
  for (const TensorSpec& weight : trained.weights()) weights.emplace(weight.name, weight);
  return [&trained, weights](const OnnxWeight& weight, int64_t first, std::span<std::byte> into) {
    trained.read(weights.at(weight.name), first, into);
  };
}

void write_tensors(const TrainedModel& trained, const std::string& path) {
  const auto [folder, name] = folder_and_name(path);
  const SafetensorsMetadata metadata = {{"format", "pt"},
                                        {"job", trained.spec().name},
                                        {"step", std::to_string(trained.step())},
                                        {"identity_sha256", trained.identity().sha256()}};
  SafetensorsWriter writer(folder, name, trained.weights(), metadata);
  std::vector<std::byte> piece(size_t{1} << 20);
  for (const TensorEntry& entry : writer.tensors())
    for (int64_t first = 0; first < entry.tensor.bytes(); first += static_cast<int64_t>(piece.size())) {
      const auto size = std::min(static_cast<int64_t>(piece.size()), entry.tensor.bytes() - first);
      const std::span part = std::span(piece).first(static_cast<size_t>(size));
      trained.read(entry.tensor, first, part);
      writer.append(part);
    }
  writer.finish();
}

}  // namespace

ExportReport export_model(const TrainedModel& trained, const ExportOptions& options) {
  const Names names(trained, options);
  const OnnxModel onnx = to_onnx(trained);
  NewFiles files(options.overwrite);
  std::vector<ExportedFile> made;
  const auto add = [&](const std::string& path, std::string what) {
    made.push_back({path, std::move(what)});
    return files.add(path);
  };
  if (options.to == ExportFormat::kSafetensors) {
    write_tensors(trained, add(names.file, "weights"));
    write_file(add(names.stem + ".config.json", "sizes, inputs and outputs"),
               describe_export(trained, onnx).dump(1) + "\n");
  } else {
    const bool apart = onnx.tensor_bytes() > options.inline_limit;
    OnnxFileOptions to{.path = add(names.file, "model")};
    if (apart) {
      to.data_path = add(names.file + ".data", "weights of the model");
      to.data_name = folder_and_name(names.file + ".data").second;
    }
    write_onnx(onnx, to, reader_of(trained));
    write_file(add(names.stem + ".inputs.json", "inputs and outputs, and how records become them"),
               describe_export(trained, onnx).dump(1) + "\n");
  }
  if (options.sample > 0) {
    const auto [folder, name] =
        folder_and_name(add(names.stem + ".sample.safetensors", "drawn inputs and their answers"));
    write_sample(trained, options.sample, folder, name);
  }
  files.finish();
  for (ExportedFile& file : made) file.bytes = static_cast<int64_t>(fs::file_size(file.path));
  return {std::move(made), onnx.inputs, onnx.outputs};
}

}  // namespace lockstep
