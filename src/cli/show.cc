// lockstep show RUN: a run's summary, its evaluations and its loss, also while it goes on. Touches nothing.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "observe/plot.h"
#include "observe/run_report.h"
#include "observe/terminal.h"

namespace lockstep {
namespace {

struct ShowOptions {
  std::string folder;
  bool json = false;
  bool ascii = false;
};

void run_show(const ShowOptions& options) {
  const RunView view = open_run(options.folder);
  if (options.json) {
    std::cout << run_report_json(view);
    return;
  }
  ReportOptions report;
  report.width = terminal_width(1);
  report.unicode = !options.ascii && environment_is_utf8();
  std::cout << run_report(view, report);
}

}  // namespace

void add_show_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("show", "print a run's summary, evaluations and loss");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("run", options->folder, "the run's folder: `output` of its job")->required();
  command->add_flag("--json", options->json, "for programs");
  command->add_flag("--ascii", options->ascii, "plot with plain characters");
  command->callback([options] { run_show(*options); });
}

}  // namespace lockstep
