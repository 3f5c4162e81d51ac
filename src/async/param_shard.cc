#include "async/param_shard.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"
#include "runtime/compile.h"

namespace lockstep::async {
namespace {

// What of a push is no tensor, on the device.
struct PushScalars {
  float lr;
  float scale;
  int64_t seed;  // with the step behind it: what keys the draws of an update
  int64_t step;
};

// As training plans its updates (train/step/train_plans.cc).
PassOptions update_passes() {
  PassOptions passes;
  passes.disabled = {"autodiff", "bf16", "row_gradients"};
  return passes;
}

}  // namespace

std::string to_text(const ShardSetup& setup) {
  return nlohmann::json{{"graphs", setup.graphs},
                        {"buffers", setup.buffers},
                        {"seed", setup.seed},
                        {"most_staged", setup.most_staged},
                        {"architecture", setup.architecture}}
      .dump();
}

ShardSetup parse_setup(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    ShardSetup setup;
    json.at("graphs").get_to(setup.graphs);
    json.at("buffers").get_to(setup.buffers);
    json.at("seed").get_to(setup.seed);
    json.at("most_staged").get_to(setup.most_staged);
    json.at("architecture").get_to(setup.architecture);
    if (setup.graphs.empty() || setup.buffers.empty() || setup.most_staged < 1)
      throw CommError("a server's part without graphs, buffers or pushes");
    return setup;
  } catch (const nlohmann::json::exception& error) {
    throw CommError("no description of a server's part: {}", error.what());
  }
}

ParamShard::ParamShard(Backend& backend, const ShardSetup& setup) : backend_(backend), setup_(setup) {
  if (backend.architecture() != setup.architecture)
    throw UserError("this server's processor computes as {}, and the run as {}; start it on another host",
                    backend.architecture(), setup.architecture);
  std::map<std::string, int64_t> sizes;
  for (const std::string& text : setup.graphs) {
    graphs_.push_back(compile(parse_graph(text, all_ops(), "a server's update"), backend, update_passes()));
    const Graph& graph = graphs_.back()->graph();
    for (const GraphInput& input : graph.inputs()) {
      const int64_t bytes = graph.type(input.value).bytes();
      if (input.role == Role::kGrad) gradient_bytes_ = bytes;
      if (input.role == Role::kParam || input.role == Role::kState) sizes[graph.name(input.value)] = bytes;
    }
  }
  for (const std::string& name : setup.buffers) {
    const auto found = sizes.find(name);
    if (found == sizes.end()) throw CommError("no update of buffer {}", name);
    buffers_.push_back(backend.allocate(found->second));
  }
  scalars_ = backend.allocate(sizeof(PushScalars));
  const auto at = [&](size_t offset) -> void* { return static_cast<char*>(scalars_->data()) + offset; };
  const std::map<std::string, void*> scalars = {{"lr", at(offsetof(PushScalars, lr))},
                                                {"scale", at(offsetof(PushScalars, scale))},
                                                {"step", at(offsetof(PushScalars, step))},
                                                {"update_rounding", at(offsetof(PushScalars, seed))}};
  for (const auto& executable : graphs_)
    for (const GraphInput& input : executable->graph().inputs()) {
      const std::string& name = executable->graph().name(input.value);
      if (const auto found = scalars.find(name); found != scalars.end())
        executable->bind(name, found->second);
      const auto buffer = std::find(setup_.buffers.begin(), setup_.buffers.end(), name);
      if (buffer != setup_.buffers.end())
        executable->bind(name, buffers_[static_cast<size_t>(buffer - setup_.buffers.begin())]->data());
    }
}

void ParamShard::check_ready() const {
  if (version_ < 0) throw CommError("a push before the weights that it is for");
}

void ParamShard::load(size_t buffer, uint64_t offset, std::span<const std::byte> bytes) {
  if (buffer >= buffers_.size() || offset + bytes.size() > static_cast<uint64_t>(bytes_of(buffer)))
    throw CommError("{} bytes at {} of buffer {}, which is not as long", bytes.size(), offset, buffer);
  backend_.upload(static_cast<std::byte*>(buffers_[buffer]->data()) + offset, bytes.data(),
                  static_cast<int64_t>(bytes.size()));
}

SharedBytes ParamShard::read(size_t buffer) const {
  check_ready();
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes_of(buffer)));
  backend_.download(bytes->data(), buffers_[buffer]->data(), bytes_of(buffer));
  return bytes;
}

void ParamShard::begin(int64_t version, int64_t updates) {
  version_ = version;
  updates_ = updates;
  staged_.clear();
  dropped_.clear();
}

std::unique_ptr<Buffer> ParamShard::gradient_buffer() {
  if (spare_.empty()) return backend_.allocate(gradient_bytes_);
  auto buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

bool ParamShard::stage(uint64_t lease, uint64_t attempt, uint64_t offset, std::span<const std::byte> bytes) {
  check_ready();
  if (const auto found = dropped_.find(lease); found != dropped_.end() && found->second >= attempt)
    return false;
  const auto refuse = [&] {
    throw CommError("{} bytes at {} of the gradient of lease {}, out of turn", bytes.size(), offset, lease);
  };
  if (offset + bytes.size() > static_cast<uint64_t>(gradient_bytes_)) refuse();
  const Push push{lease, attempt};
  if (offset == 0 && !staged_.contains(push)) {
    if (staged() >= setup_.most_staged) throw CommError("more than {} pushes at once", setup_.most_staged);
    staged_[push].gradient = gradient_buffer();
  }
  const auto found = staged_.find(push);
  if (found == staged_.end() || static_cast<uint64_t>(found->second.received) != offset) refuse();
  Staged& staged = found->second;
  backend_.upload(static_cast<std::byte*>(staged.gradient->data()) + offset, bytes.data(),
                  static_cast<int64_t>(bytes.size()));
  staged.received += static_cast<int64_t>(bytes.size());
  return staged.received == gradient_bytes_;
}

void ParamShard::drop(uint64_t lease, uint64_t attempt) {
  dropped_[lease] = std::max(dropped_[lease], attempt);
  if (auto found = staged_.extract({lease, attempt})) spare_.push_back(std::move(found.mapped().gradient));
}

void ParamShard::apply(uint64_t lease, uint64_t attempt, const ApplyOrder& order) {
  check_ready();
  if (order.version != version_ + 1)
    throw CommError("version {} is to be made of version {}", order.version, version_);
  auto found = staged_.extract({lease, attempt});
  if (!found || found.mapped().received != gradient_bytes_)
    throw CommError("lease {} is to be applied, and its gradient is not here", lease);
  if (order.skipped == 0) update(found.mapped(), order);
  version_ = order.version;
  updates_ = order.updates;
  dropped_.erase(lease);
  spare_.push_back(std::move(found.mapped().gradient));
}

void ParamShard::update(Staged& push, const ApplyOrder& order) {
  const PushScalars scalars{.lr = order.lr, .scale = order.scale, .seed = setup_.seed, .step = order.updates};
  backend_.upload(scalars_->data(), &scalars, sizeof scalars);
  for (const auto& executable : graphs_) {
    if (executable->graph().find("grads").valid()) executable->bind("grads", push.gradient->data());
    executable->run();
  }
}

}  // namespace lockstep::async
