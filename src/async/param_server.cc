#include "async/param_server.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"

namespace lockstep::async {
namespace {

using std::chrono::steady_clock;

std::string text_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

}  // namespace

ParamServer::ParamServer(const ParamServerOptions& options)
    : backend_(make_backend({.kind = DeviceKind::kCpu, .threads = options.threads})),
      door_(options.listen, options.token),
      coordinator_(Channel::connect(options.coordinator, options.token,
                                    fmt::format("server-{}", options.index),
                                    steady_clock::now() + options.patience)) {
  coordinator_->send({.kind = AsyncKind::kServe}, to_string(door_.address()));
}

ParamShard& ParamServer::shard() {
  if (!shard_) throw CommError("an order before there is anything to do it to");
  return *shard_;
}

void ParamServer::give(const AsyncHeader& header, int64_t worker) {
  const auto found = std::find_if(workers_.begin(), workers_.end(),
                                  [&](const Worker& one) { return one.number == worker && !one.over; });
  if (found == workers_.end()) return;  // it is lost, and the coordinator finds out
  found->channel->send_pieces({.kind = AsyncKind::kParams, .lease = header.lease, .attempt = header.attempt},
                              shard().read(0));
}

bool ParamServer::obey(const AsyncHeader& header, std::span<const std::byte> payload) {
  switch (header.kind) {
    case AsyncKind::kSetup: shard_.emplace(*backend_, parse_setup(text_of(payload))); return true;
    case AsyncKind::kLoad: shard().load(header.index, header.offset, payload); return true;
    case AsyncKind::kBegin:
      shard().begin(static_cast<int64_t>(header.lease), static_cast<int64_t>(header.attempt));
      return true;
    case AsyncKind::kGive: give(header, give_order(payload).worker); return true;
    case AsyncKind::kApply: {
      const ApplyOrder order = apply_order(payload);
      shard().apply(header.lease, header.attempt, order);
      report_.version = order.version;
      report_.updates += order.skipped == 0 ? 1 : 0;
      return true;
    }
    case AsyncKind::kDrop: shard().drop(header.lease, header.attempt); return true;
    case AsyncKind::kFetch:
      for (size_t i = 0; i < shard().buffers(); ++i)
        coordinator_->send_pieces({.kind = AsyncKind::kState, .index = static_cast<uint16_t>(i)},
                                  shard().read(i));
      return true;
    case AsyncKind::kPing: coordinator_->send({.kind = AsyncKind::kPong}); return true;
    case AsyncKind::kEnd: report_.why = printable(text_of(payload)); return false;
    default: throw CommError("the coordinator sends a frame of kind {}", static_cast<int>(header.kind));
  }
}

void ParamServer::hear(Worker& worker, const AsyncHeader& header, std::span<const std::byte> payload) {
  if (header.kind == AsyncKind::kJoin && worker.number == 0 && header.lease > 0) {
    worker.number = static_cast<int64_t>(header.lease);
    worker.channel->send({.kind = AsyncKind::kJoined});
  } else if (header.kind == AsyncKind::kStage && worker.number > 0) {
    if (shard().stage(header.lease, header.attempt, header.offset, payload))
      worker.channel->send({.kind = AsyncKind::kStaged, .lease = header.lease, .attempt = header.attempt});
  } else {
    throw CommError("a frame of kind {} out of turn", static_cast<int>(header.kind));
  }
}

// What a worker does wrong costs its own connection alone.
void ParamServer::move_workers(const std::vector<int>& readable) {
  for (Worker& worker : workers_) {
    try {
      if (std::find(readable.begin(), readable.end(), worker.channel->descriptor()) != readable.end())
        worker.channel->read_some([&](const AsyncHeader& header, std::span<const std::byte> payload) {
          hear(worker, header, payload);
        });
      worker.channel->write_some();
    } catch (const CommError& error) {
      log_debug("worker {} at {}: {}", worker.number, worker.channel->peer(), error.what());
      worker.over = true;
    }
  }
  std::erase_if(workers_, [](const Worker& worker) { return worker.over; });
}

ServedReport ParamServer::serve(const Descriptor& stop) {
  while (true) {
    std::vector<pollfd> entries = {{stop.get(), POLLIN, 0}, {door_.news().get(), POLLIN, 0}};
    const auto add = [&](const Channel& channel) {
      entries.push_back(
          {channel.descriptor(), static_cast<short>(POLLIN | (channel.has_unsent() ? POLLOUT : 0)), 0});
    };
    add(*coordinator_);
    for (const Worker& worker : workers_) add(*worker.channel);
    if (poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR)
      throw DeviceError("poll: {}", std::strerror(errno));
    if (entries[0].revents != 0) {
      report_.stopped = true;
      return report_;
    }
    std::vector<int> readable;
    for (const pollfd& entry : entries)
      if (entry.revents != 0) readable.push_back(entry.fd);
    bool goes_on = true;
    try {
      coordinator_->read_some([&](const AsyncHeader& header, std::span<const std::byte> payload) {
        goes_on = goes_on && obey(header, payload);
      });
      coordinator_->write_some();
    } catch (const CommError& error) {
      throw CommError("the coordinator at {}: {}", coordinator_->peer(), error.what());
    }
    if (!goes_on) return report_;
    for (Door::Guest& guest : door_.guests()) workers_.push_back({.channel = std::move(guest.channel)});
    move_workers(readable);
  }
}

}  // namespace lockstep::async
