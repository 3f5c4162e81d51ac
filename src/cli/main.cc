// The program: lockstep <subcommand>.
#include "base/standard_streams.h"
#include "cli/cli.h"

int main(int argc, char** argv) {
  constexpr int kFailed = 1;
  lockstep::secure_standard_streams();
  const int code = lockstep::run_cli(argc, argv);
  return lockstep::flush_standard_output() || code != 0 ? code : kFailed;
}
