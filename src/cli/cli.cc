#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/does_not_fit.h"
#include "base/log.h"
#include "cli/exit.h"

namespace lockstep {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kBadUsage = 2, kDoesNotFit = 3, kMissingDevice = 5 };

}  // namespace

int run_cli(int argc, char** argv) {
  CLI::App app{"Lockstep: distributed training that gives the same bits at any scale", "lockstep"};
  app.require_subcommand(1);
  add_version_command(app);
  add_env_command(app);
  add_graph_command(app);
  add_train_command(app);
  add_show_command(app);
  add_compare_command(app);
  add_check_command(app);
  add_init_command(app);
  add_schema_command(app);
  add_lr_command(app);
  add_bench_command(app);
  add_data_command(app);
  try {
    app.parse(argc, argv);
    return kDone;
  } catch (const Exit& exit) {
    return exit.code;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadUsage;
  } catch (const DoesNotFit& error) {
    const std::string_view text = error.what();
    std::cerr << "lockstep: " << text << (text.ends_with('\n') ? "" : "\n");  // a table has its own
    return kDoesNotFit;
  } catch (const MissingDevice& error) {
    std::cerr << "lockstep: " << error.what() << "\n";
    return kMissingDevice;
  } catch (const UserError& error) {
    std::cerr << "lockstep: " << error.what() << "\n";
    return kBadUsage;
  } catch (const InternalError& error) {
    std::cerr << "lockstep: internal error, please report it: " << error.what() << "\n";
    return kFailed;
  } catch (const std::exception& error) {
    std::cerr << "lockstep: " << error.what() << "\n";
    return kFailed;
  }
}

}  // namespace lockstep
