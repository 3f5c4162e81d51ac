// lockstep export RUN --to hf|peft|safetensors|onnx: a trained model as files for other programs. Touches
// nothing of the run.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"
#include "run/export_description.h"
#include "run/export_hf.h"
#include "run/export_model.h"

namespace lockstep {
namespace {

struct ExportCommand {
  std::string run;
  std::string to;
  bool external_data = false;
  std::string dtype;
  ExportOptions options;
  HfExportOptions folder;
};

ExportReport export_as_folder(const TrainedModel& model, const ExportCommand& command) {
  HfExportOptions options = command.folder;
  options.out =
      command.options.out.empty() ? fmt::format("{}-{}", model.spec().name, command.to) : command.options.out;
  if (command.dtype == "float32") options.dtype = DType::kF32;
  if (command.dtype == "bfloat16") options.dtype = DType::kBF16;
  if (command.dtype == "float16") options.dtype = DType::kF16;
  for (const auto& [given, name] : {std::pair{command.external_data, "--external-data"},
                                    {command.options.overwrite, "--overwrite"},
                                    {command.options.sample > 0, "--sample"}})
    if (given) throw UserError("{} does not go with --to {}; leave it out", name, command.to);
  if (command.to == "hf") return export_hf(model, options);
  if (options.merge)
    throw UserError("--merge does not go with --to peft; say --to hf to write the merged model");
  return export_peft(model, options);
}

ExportReport export_as_files(const TrainedModel& model, const ExportCommand& command) {
  if (command.folder.merge || !command.dtype.empty())
    throw UserError("{} is for --to hf", command.folder.merge ? "--merge" : "--dtype");
  ExportOptions options = command.options;
  options.to = command.to == "onnx" ? ExportFormat::kOnnx : ExportFormat::kSafetensors;
  if (command.external_data) {
    if (options.to != ExportFormat::kOnnx)
      throw UserError("--external-data is for --to onnx; a safetensors file holds its weights itself");
    options.inline_limit = 0;
  }
  return export_model(model, options);
}

void run_export(const ExportCommand& command) {
  const TrainedModel model(open_trained_run(command.run));
  const bool folder = command.to == "hf" || command.to == "peft";
  const ExportReport report = folder ? export_as_folder(model, command) : export_as_files(model, command);
  std::cout << fmt::format("{}, step {}{}\n", model.path(), model.step(),
                           model.averaged() ? ", moving averages of the weights" : "");
  const auto print_ports = [](const char* what, const std::vector<OnnxPort>& ports) {
    for (const OnnxPort& port : ports)
      std::cout << fmt::format("{:<8}{} {}\n", what, port.name, port_text(port));
  };
  print_ports("input", report.inputs);
  print_ports("output", report.outputs);
  for (const ExportedFile& file : report.files) {
    const double kilobytes = static_cast<double>(file.bytes) / 1e3;
    const std::string size =
        kilobytes < 1e3 ? fmt::format("{:.1f} kB", kilobytes) : fmt::format("{:.1f} MB", kilobytes / 1e3);
    std::cout << fmt::format("{}  {}  {}\n", file.path, size, file.what);
  }
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "write a trained model for other programs");
  auto options = std::make_shared<ExportCommand>();
  command->add_option("run", options->run, "a run's folder (its newest checkpoint), or a checkpoint's")
      ->required();
  command->add_option("--to", options->to, "the format to write")
      ->required()
      ->check(CLI::IsMember({"hf", "peft", "safetensors", "onnx"}));
  command->add_option(
      "--out", options->options.out,
      "the file, or of hf and peft the folder; by default the job's name with the format's ending");
  command->add_flag("--merge", options->folder.merge,
                    "of hf: add LoRA's matrices to the weights they belong to");
  command
      ->add_option("--dtype", options->dtype,
                   "of hf and peft: the type of the weights; by default that of the run")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  command
      ->add_option("--shard-size", options->folder.shard_bytes,
                   "of hf: the most that a file holds, as in 5GB")
      ->transform(CLI::AsSizeValue(true));
  command->add_flag("--overwrite", options->options.overwrite, "replace files of an earlier export");
  command->add_flag("--external-data", options->external_data,
                    "keep the weights of an ONNX model in a file beside it, as always beyond 2 GB");
  command
      ->add_option("--sample", options->options.sample,
                   "also write so many rows of drawn inputs, with the answers to compare with")
      ->check(CLI::Range(int64_t{1}, int64_t{100000}));
  command->callback([options] { run_export(*options); });
}

}  // namespace lockstep
