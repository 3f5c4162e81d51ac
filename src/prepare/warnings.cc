#include "prepare/warnings.h"

#include <fmt/format.h>

#include <map>

#include "data/shards/shard_set.h"
#include "data/table/table_report.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

void warn_of_batch(const JobParts& parts, std::vector<std::string>& warnings) {
  const int64_t batch = parts.spec.train.global_batch, records = parts.data.train->size();
  if (batch > records)
    warnings.push_back(fmt::format(
        "{}: train.global_batch {} is more than the {} training records, so that a step reads some of them "
        "more than once",
        parts.spec.where("train.global_batch"), batch, records));
}

void warn_of_rate(const JobParts& parts, std::vector<std::string>& warnings) {
  if (parts.schedule.peak() == 0)
    warnings.push_back(fmt::format("{}: the learning rate is 0 (train.lr.base), so that nothing is learnt",
                                   parts.spec.where("train.lr.base")));
}

// By content, whatever the files are called and wherever they lie.
void warn_of_evaluation(const JobParts& parts, std::vector<std::string>& warnings) {
  const ShardSet* train = parts.data.train->files();
  const ShardSet* eval = parts.data.eval ? parts.data.eval->files() : nullptr;
  if (parts.spec.data.eval.files.empty() || train == nullptr || eval == nullptr) return;
  std::map<std::string_view, std::string_view> trained;
  for (const DataShard& shard : train->manifest().shards()) trained.emplace(shard.content, shard.name);
  std::vector<std::string> same;
  for (const DataShard& shard : eval->manifest().shards())
    if (const auto found = trained.find(shard.content); found != trained.end())
      same.push_back(shard.name == found->second
                         ? shard.name
                         : fmt::format("{} (the same as {})", shard.name, found->second));
  if (same.empty()) return;
  warnings.push_back(fmt::format(
      "{}: the run is evaluated on records that it is trained on, which says nothing about others: {}{}",
      parts.spec.where("data.eval.files"), same[0],
      same.size() == 1 ? "" : fmt::format(" and {} more files", same.size() - 1)));
}

void warn_of_leaks(const JobParts& parts, std::vector<std::string>& warnings) {
  if (!parts.data.report) return;
  for (const UsedColumn& column : parts.data.report->used)
    if (column.facts && column.facts->decides_label)
      warnings.push_back(
          fmt::format("column '{}' alone decides the label '{}' in all {} records; unless it is known before "
                      "the label is, "
                      "name it under columns.ignore",
                      column.field.name, parts.data.report->label, column.facts->records));
}

// A table that model/leaf_cuts.h would cut, did the leaves divide its rows.
void warn_of_vocabulary(const JobParts& parts, std::vector<std::string>& warnings) {
  if (parts.options.mesh.tensor == 1) return;
  const Graph& graph = parts.model.graph;
  const int64_t leaves = parts.options.tensor_leaves;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "embedding") continue;
    Value table = node.inputs[0];
    const Shape& shape = graph.type(table).shape;
    if (shape[0] < shape[1] || shape[0] % leaves == 0) continue;
    while (graph.producer(table) >= 0)
      table = graph.nodes()[static_cast<size_t>(graph.producer(table))].inputs[0];
    warnings.push_back(
        fmt::format("{}: strategy.tensor_leaves {} does not divide the {} rows of {}, which every tensor "
                    "rank therefore has "
                    "whole, with its gradients and moments",
                    parts.spec.where("strategy.tensor"), leaves, shape[0], graph.name(table)));
  }
}

}  // namespace

std::vector<std::string> job_warnings(const JobParts& parts) {
  std::vector<std::string> warnings;
  warn_of_batch(parts, warnings);
  warn_of_rate(parts, warnings);
  warn_of_evaluation(parts, warnings);
  warn_of_leaks(parts, warnings);
  warn_of_vocabulary(parts, warnings);
  return warnings;
}

}  // namespace lockstep
