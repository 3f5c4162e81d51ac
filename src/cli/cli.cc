#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/does_not_fit.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/version.h"
#include "cli/command_tree.h"
#include "cli/exit.h"
#include "observe/terminal.h"

namespace lockstep {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kBadUsage = 2, kDoesNotFit = 3, kMissingDevice = 5 };

// Where standard output shows on a terminal, it shows names that others have chosen.
class ShownOutput {
 public:
  ShownOutput() {
    if (is_terminal(1)) std::cout.rdbuf(&shown_);
  }
  ~ShownOutput() {
    std::cout.flush();
    std::cout.rdbuf(before_);
  }
  ShownOutput(const ShownOutput&) = delete;
  ShownOutput& operator=(const ShownOutput&) = delete;

 private:
  std::streambuf* before_ = std::cout.rdbuf();
  PrintableBuffer shown_{*before_};
};

// A table has a line's end of its own.
void tell(std::string_view what) {
  std::cerr << "lockstep: " << printable_lines(what) << (what.ends_with('\n') ? "" : "\n");
}

// Help and the version are no errors; a name that nobody knows is told with the nearest one.
int refuse_arguments(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const std::string unknown = unknown_name(app, {argv + 1, argv + argc});
  if (unknown.empty())
    app.exit(error);
  else
    std::cerr << "lockstep: " << unknown << "\n";
  return kBadUsage;
}

}  // namespace

int run_cli(int argc, char** argv) {
  const ShownOutput shown;
  CLI::App app{"Lockstep: distributed training that gives the same bits at any scale", "lockstep"};
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("lockstep {}", kVersion), "print the version");
  add_version_command(app);
  add_env_command(app);
  add_graph_command(app);
  add_train_command(app);
  add_eval_command(app);
  add_predict_command(app);
  add_generate_command(app);
  add_chat_command(app);
  add_serve_params_command(app);
  add_serve_reduce_command(app);
  add_show_command(app);
  add_compare_command(app);
  add_check_command(app);
  add_init_command(app);
  add_schema_command(app);
  add_lr_command(app);
  add_bench_command(app);
  add_data_command(app);
  add_tokenize_command(app);
  add_export_command(app);
  add_inspect_command(app);
  add_completion_command(app);
  add_help_command(app);
  try {
    app.parse(argc, argv);
    return kDone;
  } catch (const Exit& exit) {
    return exit.code;
  } catch (const CLI::ParseError& error) {
    return refuse_arguments(app, error, argc, argv);
  } catch (const DoesNotFit& error) {
    tell(error.what());
    return kDoesNotFit;
  } catch (const MissingDevice& error) {
    std::cerr << "lockstep: " << error.what() << "\n";
    return kMissingDevice;
  } catch (const UserError& error) {
    tell(error.what());
    return kBadUsage;
  } catch (const InternalError& error) {
    tell(fmt::format("internal error, please report it: {}", error.what()));
    return kFailed;
  } catch (const std::exception& error) {
    tell(error.what());
    return kFailed;
  }
}

}  // namespace lockstep
