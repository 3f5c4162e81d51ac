#include "run/param_servers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "graph/text.h"
#include "train/update/ema.h"
#include "train/update/update.h"

namespace lockstep {
namespace {

using async::AsyncHeader;
using async::AsyncKind;
using std::chrono::steady_clock;

std::string name_of_server(size_t index, const std::string& address) {
  return fmt::format("server-{} at {}", index + 1, address);
}

void require_servable(const JobParts& parts, const TrainStep& train) {
  if (train.layout().statistics_numel() > 0)
    throw UserError(
        "strategy.mode async: running statistics of batch norms are moved once per step with those of all "
        "workers, which pushes do not have; use strategy.mode sync, or a model without batch norms");
  LOCKSTEP_CHECK(updates_elements(parts.options.optimizer), "{} needs whole tensors",
                 parts.options.optimizer.name);
}

}  // namespace

std::vector<Slice> server_slices(const FlatLayout& layout, int64_t servers) {
  const int64_t blocks = layout.numel() / kFlatBlock;
  if (servers > blocks)
    throw UserError("strategy.servers {}: the model has {} blocks of {} parameters to share out; use {}",
                    servers, blocks, kFlatBlock, blocks);
  std::vector<Slice> slices;
  for (int64_t i = 0; i < servers; ++i)
    slices.push_back({blocks * i / servers * kFlatBlock, blocks * (i + 1) / servers * kFlatBlock});
  return slices;
}

ParamServers::ParamServers(const JobParts& parts, TrainStep& train)
    : parts_(parts),
      train_(train),
      deadline_(parts.spec.strategy.deadline),
      slices_(server_slices(train.layout(), parts.spec.strategy.servers)) {
  require_servable(parts, train);
  const FlatLayout& layout = train.layout();
  const OptimizerSettings& optimizer = parts.options.optimizer;
  buffers_ = {"params"};
  element_bytes_ = {size_of(layout.dtype())};
  for (const StateBuffer& buffer : optimizer_state(layout, optimizer)) {
    buffers_.push_back(buffer.name);
    element_bytes_.push_back(size_of(buffer.dtype));
  }
  if (parts.options.ema > 0) {
    buffers_.emplace_back("average");
    element_bytes_.push_back(size_of(DType::kF32));
  }
  for (const Slice& slice : slices_) {
    async::ShardSetup setup{
        .graphs = {to_text(build_update(layout, slice, parts.model.params, {}, optimizer))},
        .buffers = buffers_,
        .seed = static_cast<int64_t>(parts.options.seed),
        // What was dropped may be under way while its lease is pushed again.
        .most_staged = 2 * (parts.spec.strategy.staleness + 1),
        .architecture = train.backend().architecture()};
    if (parts.options.ema > 0)
      setup.graphs.push_back(
          to_text(build_ema_update({layout.dtype(), {slice.size()}}, {}, parts.options.ema)));
    servers_.emplace_back().setup = std::move(setup);
  }
}

void ParamServers::add(int64_t index, std::unique_ptr<async::Channel> channel, std::string address) {
  const auto free = [&](const Server& server) { return !server.channel; };
  const auto wanted = index >= 0 && index < count() ? servers_.begin() + index
                                                    : std::find_if(servers_.begin(), servers_.end(), free);
  if (wanted == servers_.end() || !free(*wanted)) {
    channel->send({.kind = AsyncKind::kEnd}, "the run has all its servers");
    channel->write_some();
    return;
  }
  wanted->channel = std::move(channel);
  wanted->address = std::move(address);
  wanted->last_word = steady_clock::now();
}

bool ParamServers::complete() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const Server& one) { return one.channel != nullptr; });
}

std::string ParamServers::missing() const {
  std::string names;
  for (size_t i = 0; i < servers_.size(); ++i)
    if (!servers_[i].channel) names += fmt::format("{}server-{}", names.empty() ? "" : ", ", i + 1);
  return names;
}

std::string ParamServers::addresses() const {
  auto list = nlohmann::json::array();
  for (const Server& server : servers_) list.push_back(server.address);
  return list.dump();
}

std::byte* ParamServers::state_at(size_t index, size_t buffer) const {
  return static_cast<std::byte*>(train_.state().flat_buffer(buffers_[buffer])) +
         slices_[index].begin * element_bytes(buffer);
}

void ParamServers::load(int64_t version, int64_t updates) {
  for (size_t i = 0; i < servers_.size(); ++i) {
    async::Channel& channel = *servers_[i].channel;
    channel.send({.kind = AsyncKind::kSetup}, to_text(servers_[i].setup));
    for (size_t buffer = 0; buffer < buffers_.size(); ++buffer) {
      const int64_t bytes = slices_[i].size() * element_bytes(buffer);
      auto copy = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
      train_.backend().download(copy->data(), state_at(i, buffer), bytes);
      channel.send_pieces({.kind = AsyncKind::kLoad, .index = static_cast<uint16_t>(buffer)}, copy);
    }
  }
  order({.kind = AsyncKind::kBegin,
         .lease = static_cast<uint64_t>(version),
         .attempt = static_cast<uint64_t>(updates)});
}

void ParamServers::order(const AsyncHeader& header, std::string_view payload) {
  for (const Server& server : servers_) server.channel->send(header, payload);
}

void ParamServers::gather(const std::function<void()>& wait) {
  // A checkpoint may still read what is about to be overwritten.
  train_.state().gate().wait();
  for (size_t i = 0; i < servers_.size(); ++i)
    for (size_t buffer = 0; buffer < buffers_.size(); ++buffer)
      servers_[i].missing_bytes += slices_[i].size() * element_bytes(buffer);
  order({.kind = AsyncKind::kFetch});
  while (
      std::any_of(servers_.begin(), servers_.end(), [](const Server& one) { return one.missing_bytes > 0; }))
    wait();
}

void ParamServers::take(size_t index, const AsyncHeader& header, std::span<const std::byte> payload) {
  Server& server = servers_[index];
  if (header.kind == AsyncKind::kPong) {
    server.is_asked = false;
    return;
  }
  if (header.kind != AsyncKind::kState || server.missing_bytes < static_cast<int64_t>(payload.size()) ||
      header.index >= buffers_.size() ||
      header.offset + payload.size() >
          static_cast<uint64_t>(slices_[index].size() * element_bytes(header.index)))
    throw CommError("it speaks out of turn");
  train_.backend().upload(state_at(index, header.index) + header.offset, payload.data(),
                          static_cast<int64_t>(payload.size()));
  server.missing_bytes -= static_cast<int64_t>(payload.size());
}

void ParamServers::move() {
  const auto now = steady_clock::now();
  const bool pings = now >= next_ping_;
  constexpr std::chrono::duration<double> kBetweenPings{0.5};
  if (pings)
    next_ping_ =
        now + std::chrono::duration_cast<steady_clock::duration>(std::min(kBetweenPings, deadline_ / 4));
  for (size_t i = 0; i < servers_.size(); ++i) {
    Server& server = servers_[i];
    if (!server.channel) continue;
    try {
      server.channel->read_some(
          [&](const AsyncHeader& header, std::span<const std::byte> payload) { take(i, header, payload); });
      server.channel->write_some();
    } catch (const CommError& error) {
      throw CommError("{} is lost: {}", name_of_server(i, server.address), error.what());
    }
    if (server.channel->bytes_received() != server.received || !server.is_asked) {
      server.received = server.channel->bytes_received();
      server.last_word = now;
    } else if (now - server.last_word > deadline_) {
      throw CommError("{} has said nothing for {:.1f} s (strategy.deadline)",
                      name_of_server(i, server.address),
                      std::chrono::duration<double>(now - server.last_word).count());
    }
    if (pings && !server.is_asked) {
      server.is_asked = true;
      server.channel->send({.kind = AsyncKind::kPing});
    }
  }
}

int64_t ParamServers::bytes() const {
  int64_t bytes = 0;
  each_channel(
      [&](const async::Channel& channel) { bytes += channel.bytes_sent() + channel.bytes_received(); });
  return bytes;
}

}  // namespace lockstep
