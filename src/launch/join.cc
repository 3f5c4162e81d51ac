#include "launch/join.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "launch/placement.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kMostFactBytes = size_t{64} << 10;
constexpr const char* kAbsent = "(nothing)";

std::string to_text(const WorkerFacts& facts) {
  std::string text =
      Json{{"same", facts.same}, {"own", facts.own}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  LOCKSTEP_CHECK(text.size() <= kMostFactBytes, "facts of {} bytes", text.size());
  return text;
}

WorkerFacts from_text(const std::string& text, const std::string& name) {
  try {
    const Json json = Json::parse(text);
    return {json.at("same").get<std::map<std::string, std::string>>(),
            json.at("own").get<std::map<std::string, std::string>>()};
  } catch (const Json::exception&) {
    throw CommError("{} says something about itself that cannot be read", name);
  }
}

std::string value_of(const WorkerFacts& facts, const std::string& field) {
  const auto found = facts.same.find(field);
  return found == facts.same.end() ? kAbsent : found->second;
}

std::string difference_in(const std::vector<WorkerFacts>& all, const std::string& field) {
  std::map<std::string, std::vector<size_t>> ranks_by_value;
  for (size_t rank = 0; rank < all.size(); ++rank) ranks_by_value[value_of(all[rank], field)].push_back(rank);
  if (ranks_by_value.size() == 1) return "";
  // The value that most have; of equals, the one with the lowest rank.
  const auto* most = &*ranks_by_value.begin();
  for (const auto& entry : ranks_by_value)
    if (entry.second.size() > most->second.size() ||
        (entry.second.size() == most->second.size() && entry.second.front() < most->second.front()))
      most = &entry;
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> others;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const std::string value = value_of(all[rank], field);
    if (value == most->first) continue;
    if (others.size() == kMostNamed) {
      others.emplace_back("...");
      break;
    }
    const auto host = all[rank].own.find("host");
    others.push_back(fmt::format("{}{} has {}", worker_name(static_cast<int64_t>(rank)),
                                 host == all[rank].own.end() ? "" : fmt::format(" on {}", host->second),
                                 value));
  }
  return fmt::format("{}: {}, but {}{} has {}", field, fmt::join(others, ", "),
                     worker_name(static_cast<int64_t>(most->second.front())),
                     most->second.size() > 1 ? fmt::format(" (and {} more)", most->second.size() - 1) : "",
                     most->first);
}

}  // namespace

std::string differences(const std::vector<WorkerFacts>& all) {
  std::set<std::string> fields;
  for (const WorkerFacts& facts : all)
    for (const auto& [field, value] : facts.same) fields.insert(field);
  std::vector<std::string> found;
  for (const std::string& field : fields)
    if (std::string text = difference_in(all, field); !text.empty()) found.push_back(std::move(text));
  return fmt::format("{}", fmt::join(found, "; "));
}

std::vector<WorkerFacts> join(StoreClient& store, int64_t rank, int64_t size, const WorkerFacts& facts,
                              milliseconds deadline) {
  const TimePoint until = steady_clock::now() + deadline;
  const auto left = [&] {
    return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(until - steady_clock::now()));
  };
  const auto key = [](int64_t one) { return fmt::format("join/{:08}", one); };
  store.set(key(rank), to_text(facts));
  store.barrier("join", size, left());
  const std::map<std::string, std::string> entries = store.list("join/");
  std::vector<WorkerFacts> all;
  for (int64_t one = 0; one < size; ++one) {
    const auto found = entries.find(key(one));
    if (found == entries.end())
      throw CommError("{} workers came, but none is {}; give each its own rank", size, worker_name(one));
    all.push_back(from_text(found->second, worker_name(one)));
  }
  // Nobody leaves before all have read: whoever differs would otherwise be reported as lost.
  store.barrier("joined", size, left());
  const std::string wrong = differences(all);
  if (!wrong.empty())
    throw UserError(
        "the workers are not about to run the same thing: {}; give all of them the same job file, data "
        "and version of Lockstep",
        wrong);
  return all;
}

}  // namespace lockstep
