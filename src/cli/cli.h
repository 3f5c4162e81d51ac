// The command line: one file per subcommand, each adding itself to the parser.
#pragma once
#include <CLI/App.hpp>

namespace lockstep {

// Parses and runs; turns every exception into a message and an exit code (docs/errors.md).
int run_cli(int argc, char** argv);

void add_version_command(CLI::App& app);
void add_env_command(CLI::App& app);
void add_graph_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_serve_params_command(CLI::App& app);
void add_serve_reduce_command(CLI::App& app);
void add_show_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_init_command(CLI::App& app);
void add_schema_command(CLI::App& app);
void add_lr_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_help_command(CLI::App& app);
void add_completion_command(CLI::App& app);

}  // namespace lockstep
