// Cluster specifications in JSON: Vertex AI's CLUSTER_SPEC, and TF_CONFIG.
//
// Both list the processes of a job by role and say which one this is. Ranks count the roles that train, in
// order: the chief, then the workers. Reducers, parameter servers and evaluators have no rank.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "launch/families.h"
#include "launch/host_port.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostBytes = size_t{8} << 20;

struct ClusterFormat {
  std::string_view family;
  std::string_view variable;
  std::vector<std::string_view> training_roles;  // in the order of ranks
  std::string_view example;
};

[[noreturn]] void refuse(const ClusterFormat& format, const std::string& why) {
  throw UserError("{}: {}; it should read like {}", format.variable, why, format.example);
}

Json parse(const ClusterFormat& format, std::string_view text) {
  if (text.size() > kMostBytes) refuse(format, fmt::format("{} bytes are too many", text.size()));
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) refuse(format, fmt::format("{} is not JSON", in_quotes(text)));
  if (!document.is_object()) refuse(format, "it is not an object");
  return document;
}

const Json& member(const ClusterFormat& format, const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) refuse(format, fmt::format("it has no object '{}'", key));
  return *found;
}

struct Task {
  std::string role;
  int64_t index = 0;
};

// Some writers put the index into a string.
Task read_task(const ClusterFormat& format, const Json& document) {
  const Json& task = member(format, document, "task");
  const auto type = task.find("type");
  if (type == task.end() || !type->is_string()) refuse(format, "task has no string 'type'");
  const auto index = task.find("index");
  if (index == task.end()) refuse(format, "task has no 'index'");
  const std::string digits = index->is_string() ? index->get<std::string>() : index->dump();
  const Variables one = {{"task.index", digits}};
  try {
    return {type->get<std::string>(), find_integer(one, "task.index", 0, kMostWorkers - 1).value_or(0)};
  } catch (const UserError& error) {
    refuse(format, error.what());
  }
}

std::vector<HostPort> addresses(const ClusterFormat& format, const Json& cluster, std::string_view role) {
  const auto found = cluster.find(role);
  if (found == cluster.end()) return {};
  if (!found->is_array()) refuse(format, fmt::format("cluster.{} is not a list", role));
  if (found->size() > static_cast<size_t>(kMostWorkers)) refuse(format, "it has too many tasks");
  std::vector<HostPort> list;
  for (const Json& entry : *found) {
    if (!entry.is_string()) refuse(format, fmt::format("cluster.{} is not a list of strings", role));
    list.push_back(parse_host_port(entry.get_ref<const std::string&>(),
                                   fmt::format("{}: cluster.{}", format.variable, role)));
  }
  return list;
}

std::optional<WorkerPlace> cluster_placement(const Variables& variables, const ClusterFormat& format) {
  const auto text = find_variable(variables, format.variable);
  if (!text) return std::nullopt;
  const Json document = parse(format, *text);
  // A single process may be described by its task alone, or not at all.
  if (!document.contains("cluster") || document["cluster"].empty()) return std::nullopt;
  const Json& cluster = member(format, document, "cluster");
  const Task task = read_task(format, document);

  std::vector<HostPort> all;
  std::optional<size_t> self;
  for (const std::string_view role : format.training_roles) {
    const std::vector<HostPort> some = addresses(format, cluster, role);
    if (role == task.role) {
      if (static_cast<size_t>(task.index) >= some.size())
        refuse(format, fmt::format("task is {} {}, but cluster.{} lists {}", task.role, task.index, task.role,
                                   some.size()));
      self = all.size() + static_cast<size_t>(task.index);
    }
    all.insert(all.end(), some.begin(), some.end());
  }
  if (!self)
    throw UserError("{}: this process is {} {}, a role that does not train; start Lockstep in {} only",
                    format.variable, in_quotes(task.role), task.index,
                    fmt::join(format.training_roles, ", "));
  if (all.size() > static_cast<size_t>(kMostWorkers)) refuse(format, "it has too many tasks");

  WorkerPlace placement;
  placement.family = format.family;
  placement.rank = static_cast<int64_t>(*self);
  placement.size = static_cast<int64_t>(all.size());
  placement.said =
      fmt::format("{}: task {} {}, {} that train", format.variable, task.role, task.index, placement.size);
  placement.host = all[*self].host;
  placement.local_size = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].host != placement.host) continue;
    ++placement.local_size;
    if (i < *self) ++placement.local_rank;
  }
  placement.master_port = all.front().port;
  place_master(placement, variables, all.front().host);
  return placement;
}

const ClusterFormat& vertex_format() {
  static const ClusterFormat format = {
      "Vertex AI",
      "CLUSTER_SPEC",
      {"workerpool0", "workerpool1"},
      R"({"cluster": {"workerpool0": ["a:2222"], "workerpool1": ["b:2222"]}, "task": {"type": "workerpool1", "index": 0}})"};
  return format;
}

const ClusterFormat& tf_config_format() {
  static const ClusterFormat format = {
      "TensorFlow",
      "TF_CONFIG",
      {"chief", "master", "worker"},
      R"({"cluster": {"chief": ["a:2222"], "worker": ["b:2222"]}, "task": {"type": "worker", "index": 0}})"};
  return format;
}

}  // namespace

std::optional<WorkerPlace> vertex_placement(const Variables& variables) {
  return cluster_placement(variables, vertex_format());
}

std::optional<WorkerPlace> tf_config_placement(const Variables& variables) {
  return cluster_placement(variables, tf_config_format());
}

std::optional<HostPort> cluster_master(const Variables& variables) {
  for (const ClusterFormat* format : {&vertex_format(), &tf_config_format()}) {
    const auto text = find_variable(variables, format->variable);
    if (!text) continue;
    const Json document = parse(*format, *text);
    if (!document.contains("cluster") || document["cluster"].empty()) continue;
    for (const std::string_view role : format->training_roles)
      if (const auto some = addresses(*format, member(*format, document, "cluster"), role); !some.empty())
        return some.front();
  }
  return {};
}

}  // namespace lockstep
