// lockstep export RUN --to safetensors|onnx: a trained model as files for other programs. Touches nothing of
// the run.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"
#include "run/export_description.h"
#include "run/export_model.h"

namespace lockstep {
namespace {

struct ExportCommand {
  std::string run;
  std::string to;
  bool external_data = false;
  ExportOptions options;
};

void run_export(const ExportCommand& command) {
  ExportOptions options = command.options;
  options.to = command.to == "onnx" ? ExportFormat::kOnnx : ExportFormat::kSafetensors;
  if (command.external_data) {
    if (options.to != ExportFormat::kOnnx)
      throw UserError("--external-data is for --to onnx; a safetensors file holds its weights itself");
    options.inline_limit = 0;
  }
  const TrainedModel model(open_trained_run(command.run));
  const ExportReport report = export_model(model, options);
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
      ->check(CLI::IsMember({"safetensors", "onnx"}));
  command->add_option("--out", options->options.out,
                      "the file; by default the job's name with the format's ending");
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
