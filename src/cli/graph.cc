// lockstep graph FILE|MODEL: shows a graph at any stage of compilation, and explains what was decided.
#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/model_options.h"
#include "graph/text.h"
#include "ops/registry.h"
#include "runtime/compile.h"

namespace lockstep {
namespace {

struct GraphOptions {
  ModelOptions model;
  std::vector<std::string> passes;  // run only these
  std::vector<std::string> dump_after;
  std::vector<std::string> disabled;
  std::vector<std::string> explain;
  std::vector<std::string> shard;
  std::string stop_after;
  std::string recompute = "none";
  int64_t head_chunks = 1;
  std::string backend = "cpu";
  bool dot = false;
};

Graph load(const GraphOptions& options) {
  const std::string& source = options.model.model;
  if (is_model_name(source)) return build_model(options.model).graph;
  if (std::filesystem::exists(source)) return parse_graph(read_file(source), all_ops(), source);
  throw UserError("{} is neither a file nor a model; models: {}", source, model_names());
}

std::string to_dot(const Graph& graph) {
  std::string out =
      fmt::format("digraph {} {{\n  rankdir=TB; node [shape=box, fontname=monospace];\n", graph.name());
  for (const GraphInput& input : graph.inputs())
    out += fmt::format("  v{} [label=\"{}\\n{}\", style=rounded];\n", input.value.id, graph.name(input.value),
                       to_string(graph.type(input.value)));
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    out += fmt::format("  n{} [label=\"{}\\n{}: {}\"];\n", n, node.op->name, graph.name(node.outputs[0]),
                       to_string(graph.type(node.outputs[0])));
    for (const Value input : node.inputs) {
      const int32_t from = graph.producer(input);
      out += from < 0 ? fmt::format("  v{} -> n{};\n", input.id, n) : fmt::format("  n{} -> n{};\n", from, n);
    }
  }
  return out + "}\n";
}

std::vector<std::string> pieces_of(const std::string& text, char separator) {
  std::vector<std::string> pieces;
  std::istringstream stream(text);
  for (std::string piece; std::getline(stream, piece, separator);) pieces.push_back(piece);
  return pieces;
}

// "tensor:2:w1=1,w2=0": over two ranks, w1 split along its axis 1 and w2 along its axis 0.
ShardAxis parse_shard(const std::string& text) {
  const auto number = [&](const std::string& digits) {
    int value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
      throw UserError("--shard {}: {} is no number; write, for example, tensor:2:w1=1,w2=0", text, digits);
    return value;
  };
  std::vector<std::string> parts = pieces_of(text, ':');
  parts.resize(3);
  ShardAxis axis{parts[0], number(parts[1])};
  for (const std::string& input : pieces_of(parts[2], ',')) {
    const size_t equals = std::min(input.find('='), input.size());
    axis.placements[input.substr(0, equals)] =
        Placement::split(number(input.substr(std::min(equals + 1, input.size()))));
  }
  return axis;
}

PassOptions pass_options(const GraphOptions& options) {
  PassOptions result;
  for (const std::string& text : options.shard) result.shard.push_back(parse_shard(text));
  result.recompute = parse_recompute(options.recompute);
  result.head_chunks = options.head_chunks;
  result.disabled = options.disabled;
  result.stop_after = options.stop_after;
  result.dump_after = options.dump_after;
  result.dump = [](std::string_view pass, const Graph& graph) {
    std::cout << "# after " << pass << "\n" << to_text(graph);
  };
  result.explain = [topics = options.explain](std::string_view about, const std::string& line) {
    if (std::find(topics.begin(), topics.end(), about) != topics.end()) std::cout << line << "\n";
  };
  if (!options.passes.empty()) {
    for (const std::string& name : options.passes) find_pass(name);
    for (const Pass& pass : all_passes())
      if (std::find(options.passes.begin(), options.passes.end(), pass.name) == options.passes.end())
        result.disabled.emplace_back(pass.name);
  }
  return result;
}

void run_graph(const GraphOptions& options) {
  Graph graph = load(options);
  const bool trainable = std::any_of(graph.inputs().begin(), graph.inputs().end(),
                                     [](const GraphInput& input) { return input.role == Role::kParam; });
  PassOptions passes = pass_options(options);
  if (!trainable) passes.disabled.emplace_back("autodiff");
  graph = run_passes(graph, passes);
  const bool kernels = std::count(options.explain.begin(), options.explain.end(), "kernels") > 0;
  const bool memory = std::count(options.explain.begin(), options.explain.end(), "memory") > 0;
  if (kernels || memory) {
    const auto backend = options.backend == "null" ? make_null_backend() : make_cpu_backend(1);
    const Plan plan = make_plan(graph, *backend);
    if (kernels) std::cout << kernel_table(plan);
    if (memory) std::cout << memory_table(plan);
  }
  if (options.dot)
    std::cout << to_dot(graph);
  else if (options.explain.empty() && options.dump_after.empty())
    std::cout << to_text(graph);
}

}  // namespace

void add_graph_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("graph", "show a graph at any stage of compilation");
  auto options = std::make_shared<GraphOptions>();
  command->add_option("source", options->model.model, "a text graph's file, or a model: " + model_names())
      ->required();
  add_model_options(*command, options->model);
  command->add_option("--pass", options->passes, "run only this pass (may be given several times)");
  command->add_option("--dump-after", options->dump_after, "print the graph after this pass");
  command->add_option("--disable-pass", options->disabled, "leave this pass out");
  command->add_option("--stop-after", options->stop_after, "stop after this pass");
  command->add_option("--recompute", options->recompute, "none, fused, cheap or block");
  command->add_option("--head-chunks", options->head_chunks, "parts in which rows go through the head")
      ->check(CLI::PositiveNumber);
  command->add_option("--backend", options->backend, "cpu or null, for --explain")
      ->check(CLI::IsMember({"cpu", "null"}));
  command->add_option("--shard", options->shard,
                      "split over the ranks of an axis, the first of which is shown: tensor:2:w1=1,w2=0");
  command->add_option("--explain", options->explain, "kernels, fusion, sharding, schedule or memory")
      ->check(CLI::IsMember({"kernels", "fusion", "sharding", "schedule", "memory"}));
  command->add_flag("--dot", options->dot, "print Graphviz");
  command->callback([options] { run_graph(*options); });
}

}  // namespace lockstep
