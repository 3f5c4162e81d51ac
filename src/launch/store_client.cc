#include "launch/store_client.h"

#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>
#include <thread>

#include "base/error.h"
#include "launch/placement.h"
#include "launch/store_protocol.h"
#include "launch/token.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long the store may take beyond what it was asked to wait.
constexpr milliseconds kAnswerTime{10000};
constexpr milliseconds kBetweenAttempts{20};

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

std::string missing_workers(const std::vector<std::string>& came, int64_t count) {
  const std::set<std::string> here(came.begin(), came.end());
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> missing;
  for (int64_t rank = 0; rank < count && missing.size() <= kMostNamed; ++rank)
    if (!here.contains(worker_name(rank))) missing.push_back(worker_name(rank));
  if (missing.size() > kMostNamed) missing.back() = "...";
  return fmt::format("{}", fmt::join(missing, ", "));
}

}  // namespace

StoreClient::StoreClient(HostPort address, std::string_view token, std::string name, milliseconds deadline)
    : address_(std::move(address)), name_(std::move(name)) {
  const TimePoint until = steady_clock::now() + deadline;
  try {
    socket_ = connect(until);
    get_acquainted(token, until);
  } catch (const TokenRefused&) {
    throw;
  } catch (const CommError& error) {
    throw CommError("{} cannot join the store at {}: {}", name_, to_string(address_), error.what());
  }
}

StoreClient::~StoreClient() { say_goodbye(); }

void StoreClient::say_goodbye() const {
  const std::string bye = encode({MessageKind::kBye, {}});
  if (socket_) ::send(socket_.get(), bye.data(), bye.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Descriptor StoreClient::connect(TimePoint deadline) const {
  while (true) {
    try {
      return connect_to(address_, deadline);
    } catch (const CommError&) {
      if (steady_clock::now() + kBetweenAttempts >= deadline) throw;
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

void StoreClient::get_acquainted(std::string_view token, TimePoint deadline) {
  const std::string nonce = random_nonce();
  send(encode({MessageKind::kHello, {std::string(kStoreProtocol), name_, nonce}}), deadline);
  const auto expect = [&](MessageKind kind) {
    StoreMessage answer = receive(deadline);
    if (answer.kind == MessageKind::kRefused && answer.fields.size() == 1) {
      if (answer.fields[0] != kOtherToken) throw CommError("it refuses: {}", answer.fields[0]);
      throw TokenRefused(
          "the store at {} has another token than {}; give all workers of a run the same LOCKSTEP_TOKEN",
          to_string(address_), name_);
    }
    if (answer.kind != kind || answer.fields.size() != 1) throw CommError("it answers out of turn");
    return answer.fields[0];
  };
  const std::string challenge = expect(MessageKind::kChallenge);
  send(encode({MessageKind::kProof, {proof_of(token, "client", name_, nonce, challenge)}}), deadline);
  const std::string proof = proof_of(token, "server", name_, nonce, challenge);
  try {
    if (!same_proof(expect(MessageKind::kWelcome), proof))
      throw CommError("it does not know the token itself: another program listens there");
  } catch (const CommError&) {
    // A busy store may still take us in, and would count us as lost.
    say_goodbye();
    throw;
  }
}

void StoreClient::send(const std::string& bytes, TimePoint deadline) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    if (!wait_writable(socket_, deadline)) throw CommError("it does not take what is sent to it");
    const ssize_t some = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (some >= 0)
      sent += static_cast<size_t>(some);
    else if (errno != EAGAIN && errno != EINTR)
      throw CommError("the connection broke: {}", std::strerror(errno));
  }
}

StoreMessage StoreClient::receive(TimePoint deadline) {
  while (true) {
    if (auto message = reader_.next()) return std::move(*message);
    if (!wait_readable(socket_, deadline)) throw CommError("it does not answer in time");
    std::array<char, size_t{64} << 10> buffer;
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got > 0)
      reader_.feed({buffer.data(), static_cast<size_t>(got)});
    else if (got == 0)
      throw CommError("it closed the connection");
    else if (errno != EAGAIN && errno != EINTR)
      throw CommError("the connection broke: {}", std::strerror(errno));
  }
}

StoreMessage StoreClient::exchange(const StoreMessage& request, TimePoint deadline) {
  try {
    send(encode(request), deadline);
    return receive(deadline);
  } catch (const CommError&) {
    // An answer that comes later would be taken for that to the next request.
    socket_.reset();
    throw;
  }
}

StoreMessage StoreClient::ask(const std::string& what, const StoreMessage& request, milliseconds patience) {
  const std::scoped_lock lock(mutex_);
  try {
    if (!socket_) throw CommError("the connection is broken");
    StoreMessage answer = exchange(request, steady_clock::now() + patience + kAnswerTime);
    if (answer.kind == MessageKind::kLost && answer.fields.size() == 1)
      throw CommError("{}: {} is lost: its connection to the store ended", what, answer.fields[0]);
    if (answer.kind == MessageKind::kRefused && answer.fields.size() == 1)
      throw CommError("{}: refused: {}", what, answer.fields[0]);
    if (answer.kind != MessageKind::kOk && answer.kind != MessageKind::kTimedOut)
      throw CommError("{}: it answers out of turn", what);
    return answer;
  } catch (const CommError& error) {
    throw CommError("{} at the store {}: {}", name_, to_string(address_), error.what());
  }
}

void StoreClient::set(const std::string& key, const std::string& value) {
  ask(fmt::format("set '{}'", key), {MessageKind::kSet, {key, value}}, milliseconds(0));
}

std::string StoreClient::get(const std::string& key, milliseconds deadline) {
  StoreMessage answer = ask(fmt::format("get '{}'", key),
                            {MessageKind::kGet, {key, std::to_string(deadline.count())}}, deadline);
  if (answer.kind == MessageKind::kTimedOut || answer.fields.size() != 1)
    throw CommError("{} waited {:g} s at the store {} for '{}', which nobody set", name_, seconds(deadline),
                    to_string(address_), key);
  return std::move(answer.fields[0]);
}

int64_t StoreClient::add(const std::string& key, int64_t number) {
  const StoreMessage answer = ask(fmt::format("add to '{}'", key),
                                  {MessageKind::kAdd, {key, std::to_string(number)}}, milliseconds(0));
  const std::string text = answer.fields.size() == 1 ? answer.fields[0] : "";
  int64_t sum = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), sum);
  if (failure != std::errc() || end != text.data() + text.size())
    throw CommError("add to '{}': the store gives no sum", key);
  return sum;
}

std::map<std::string, std::string> StoreClient::list(const std::string& prefix) {
  StoreMessage answer =
      ask(fmt::format("list '{}'", prefix), {MessageKind::kList, {prefix}}, milliseconds(0));
  std::map<std::string, std::string> entries;
  for (size_t i = 0; i + 1 < answer.fields.size(); i += 2)
    entries.emplace(std::move(answer.fields[i]), std::move(answer.fields[i + 1]));
  return entries;
}

void StoreClient::barrier(const std::string& name, int64_t count, milliseconds deadline) {
  const StoreMessage answer =
      ask(fmt::format("barrier '{}'", name),
          {MessageKind::kBarrier, {name, std::to_string(count), std::to_string(deadline.count())}}, deadline);
  if (answer.kind == MessageKind::kTimedOut)
    throw CommError("{} waited {:g} s at the barrier '{}': {} of {} workers came; missing: {}", name_,
                    seconds(deadline), name, answer.fields.size(), count,
                    missing_workers(answer.fields, count));
}

}  // namespace lockstep
