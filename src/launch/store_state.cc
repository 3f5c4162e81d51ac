#include "launch/store_state.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr size_t kMostKeys = size_t{1} << 18;
constexpr size_t kMostBytes = size_t{128} << 20;
constexpr size_t kMostKeyLength = 256;
constexpr size_t kMostWaits = size_t{1} << 17;
constexpr int64_t kMostCount = int64_t{1} << 17;
constexpr int64_t kMostMilliseconds = int64_t{24} * 3600 * 1000;

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::chrono::milliseconds> milliseconds(std::string_view text) {
  const auto value = integer(text);
  if (!value || *value < 0 || *value > kMostMilliseconds) return std::nullopt;
  return std::chrono::milliseconds(*value);
}

StoreMessage refused(std::string why) { return {MessageKind::kRefused, {std::move(why)}}; }

size_t fields_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kSet:
    case MessageKind::kGet:
    case MessageKind::kAdd: return 2;
    case MessageKind::kBarrier: return 3;
    case MessageKind::kList: return 1;
    default: return 0;
  }
}

}  // namespace

void StoreState::handle(ClientId client, const std::string& name, const StoreMessage& request, TimePoint now,
                        std::vector<Answer>& answers) {
  const size_t fields = fields_of(request.kind);
  if (fields == 0 || request.fields.size() != fields || request.fields[0].size() > kMostKeyLength) {
    answers.push_back({client, refused("it is no request")});
    return;
  }
  switch (request.kind) {
    case MessageKind::kSet: answers.push_back({client, set(request, answers)}); break;
    case MessageKind::kAdd: answers.push_back({client, add(request, answers)}); break;
    case MessageKind::kList: answers.push_back({client, list(request)}); break;
    case MessageKind::kGet: get(client, request, now, answers); break;
    default: barrier(client, name, request, now, answers); break;
  }
}

bool StoreState::put(const std::string& key, const std::string& value, std::vector<Answer>& answers) {
  const auto found = values_.find(key);
  const size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const size_t after = bytes_ - before + key.size() + value.size();
  if (after > kMostBytes || (found == values_.end() && values_.size() >= kMostKeys)) return false;
  bytes_ = after;
  values_.insert_or_assign(key, value);
  std::erase_if(waits_, [&](const Wait& wait) {
    if (wait.key != key) return false;
    answers.push_back({wait.client, {MessageKind::kOk, {value}}});
    return true;
  });
  return true;
}

StoreMessage StoreState::set(const StoreMessage& request, std::vector<Answer>& answers) {
  if (!put(request.fields[0], request.fields[1], answers)) return refused("the store is full");
  return {MessageKind::kOk, {}};
}

StoreMessage StoreState::add(const StoreMessage& request, std::vector<Answer>& answers) {
  const auto found = values_.find(request.fields[0]);
  const auto before = found == values_.end() ? std::optional<int64_t>(0) : integer(found->second);
  const auto delta = integer(request.fields[1]);
  int64_t sum = 0;
  if (!before || !delta || __builtin_add_overflow(*before, *delta, &sum))
    return refused(fmt::format("{} is no number that can be added to", request.fields[0]));
  if (!put(request.fields[0], std::to_string(sum), answers)) return refused("the store is full");
  return {MessageKind::kOk, {std::to_string(sum)}};
}

StoreMessage StoreState::list(const StoreMessage& request) const {
  const std::string& prefix = request.fields[0];
  StoreMessage answer = {MessageKind::kOk, {}};
  size_t length = 1;
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) {
    length += at->first.size() + at->second.size() + 8;
    if (length > kFrameLimit) return refused("the list is longer than a message may be");
    answer.fields.push_back(at->first);
    answer.fields.push_back(at->second);
  }
  return answer;
}

void StoreState::get(ClientId client, const StoreMessage& request, TimePoint now,
                     std::vector<Answer>& answers) {
  const std::string& key = request.fields[0];
  const auto patience = milliseconds(request.fields[1]);
  if (const auto found = values_.find(key); found != values_.end())
    answers.push_back({client, {MessageKind::kOk, {found->second}}});
  else if (!patience || waits_.size() >= kMostWaits)
    answers.push_back({client, refused("it cannot wait")});
  else if (!lost_.empty())
    answers.push_back({client, {MessageKind::kLost, {*lost_.begin()}}});
  else
    waits_.push_back({client, key, now + *patience});
}

void StoreState::barrier(ClientId client, const std::string& name, const StoreMessage& request, TimePoint now,
                         std::vector<Answer>& answers) {
  const std::string& key = request.fields[0];
  const auto count = integer(request.fields[1]);
  const auto patience = milliseconds(request.fields[2]);
  if (!count || *count < 1 || *count > kMostCount || !patience || barriers_.size() >= kMostWaits) {
    answers.push_back({client, refused("it is no barrier")});
    return;
  }
  if (!lost_.empty()) {
    answers.push_back({client, {MessageKind::kLost, {*lost_.begin()}}});
    return;
  }
  Barrier& barrier = barriers_.try_emplace(key, Barrier{*count, {}}).first->second;
  if (barrier.count != *count) {
    answers.push_back({client, refused(fmt::format("{} waits for {} workers at '{}', others for {}", name,
                                                   *count, key, barrier.count))});
    return;
  }
  barrier.arrivals.push_back({client, name, now + *patience});
  if (static_cast<int64_t>(barrier.arrivals.size()) < barrier.count) return;
  for (const Arrival& arrival : barrier.arrivals) answers.push_back({arrival.client, {MessageKind::kOk, {}}});
  barriers_.erase(key);
}

void StoreState::left(ClientId client, const std::string& name, bool said_goodbye,
                      std::vector<Answer>& answers) {
  std::erase_if(waits_, [&](const Wait& wait) { return wait.client == client; });
  for (auto& [key, barrier] : barriers_)
    std::erase_if(barrier.arrivals, [&](const Arrival& arrival) { return arrival.client == client; });
  std::erase_if(barriers_, [](const auto& entry) { return entry.second.arrivals.empty(); });
  if (said_goodbye) return;
  lost_.insert(name);
  const StoreMessage news = {MessageKind::kLost, {name}};
  for (const Wait& wait : waits_) answers.push_back({wait.client, news});
  for (const auto& [key, barrier] : barriers_)
    for (const Arrival& arrival : barrier.arrivals) answers.push_back({arrival.client, news});
  waits_.clear();
  barriers_.clear();
}

void StoreState::expire(TimePoint now, std::vector<Answer>& answers) {
  std::erase_if(waits_, [&](const Wait& wait) {
    if (wait.deadline > now) return false;
    answers.push_back({wait.client, {MessageKind::kTimedOut, {}}});
    return true;
  });
  for (auto& [key, barrier] : barriers_) {
    StoreMessage who_came = {MessageKind::kTimedOut, {}};
    for (const Arrival& arrival : barrier.arrivals) who_came.fields.push_back(arrival.name);
    std::erase_if(barrier.arrivals, [&](const Arrival& arrival) {
      if (arrival.deadline > now) return false;
      answers.push_back({arrival.client, who_came});
      return true;
    });
  }
  std::erase_if(barriers_, [](const auto& entry) { return entry.second.arrivals.empty(); });
}

TimePoint StoreState::next_deadline() const {
  TimePoint next = TimePoint::max();
  for (const Wait& wait : waits_) next = std::min(next, wait.deadline);
  for (const auto& [key, barrier] : barriers_)
    for (const Arrival& arrival : barrier.arrivals) next = std::min(next, arrival.deadline);
  return next;
}

}  // namespace lockstep
