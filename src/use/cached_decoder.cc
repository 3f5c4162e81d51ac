#include "use/cached_decoder.h"

#include <algorithm>
#include <bit>

#include "base/available_memory.h"
#include "base/does_not_fit.h"
#include "base/number_text.h"
#include "graph/op_def.h"
#include "train/evaluate/evaluate.h"

namespace lockstep {
namespace {

// Texts that are read at once are padded to a multiple of this; short ones to a power of two.
constexpr int64_t kGrain = 64;

bool is_cache(std::string_view name) { return name.starts_with("cache."); }

int64_t arena_bytes(const Plan& plan) { return plan.memory.arena_peak; }

int64_t input_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const GraphInput& input : plan.graph.inputs())
    if (input.role == Role::kInput) bytes += plan.graph.type(input.value).bytes();
  return bytes;
}

int64_t state_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const GraphInput& input : plan.graph.inputs())
    if (input.role == Role::kState) bytes += plan.graph.type(input.value).bytes();
  return bytes;
}

}  // namespace

int64_t CachedDecoder::padded(int64_t tokens) {
  if (tokens <= 1) return 1;
  if (tokens <= kGrain) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tokens)));
  return (tokens + kGrain - 1) / kGrain * kGrain;
}

CachedDecoder::CachedDecoder(GeneratingModel& model, Backend& backend, int64_t prompt, int64_t capacity,
                             int64_t memory)
    : model_(model), backend_(backend), capacity_(capacity) {
  LOCKSTEP_CHECK(prompt >= 1 && capacity >= prompt, "a prompt of {} tokens in a cache of {}", prompt,
                 capacity);
  const int64_t length = length_of(prompt), seq = padded(prompt);
  Plan one_token = plan(1, length);
  Plan reading = plan(seq, length);
  cache_bytes_ = state_bytes(one_token);
  planned_bytes_ = model.weight_bytes() + cache_bytes_ +
                   std::max(arena_bytes(reading), arena_bytes(one_token)) + input_bytes(reading) +
                   input_bytes(one_token) + reading.memory.kernels.bytes() + one_token.memory.kernels.own;
  require_fit(reading, one_token, memory);
  arena_ = backend.allocate(std::max<int64_t>(1, std::max(arena_bytes(reading), arena_bytes(one_token))));
  allocate_cache(one_token);
  model.load(backend);
  one_token_ = make(std::move(one_token), 1, length);
  if (seq > 1) readers_[seq] = make(std::move(reading), seq, length);
  logits_.resize(static_cast<size_t>(model.family().vocab));
}

// What a text of so many tokens is turned by, in terms of the longest that is turned so.
int64_t CachedDecoder::length_of(int64_t tokens) const {
  return std::min(capacity_, model_.family().same_angles_up_to(tokens));
}

Plan CachedDecoder::plan(int64_t seq, int64_t length) const {
  return plan_evaluation(model_.build({.batch = 1, .seq = seq, .cache = capacity_, .length = length}),
                         backend_, model_.passes());
}

void CachedDecoder::require_fit(const Plan& reading, const Plan& one_token, int64_t memory) const {
  const int64_t available = memory > 0 ? memory : available_memory_bytes();
  if (available <= 0 || planned_bytes_ <= available) return;
  throw DoesNotFit(
      "{} takes {} to generate with, and there are {}\n  weights  {}\n  cache    {}, of {} tokens\n  plans   "
      " "
      "{}\nfewer tokens (--max-tokens, a shorter prompt) take less cache, --precision bf16 half of both",
      model_.path(), bytes_text(planned_bytes_), bytes_text(available), bytes_text(model_.weight_bytes()),
      bytes_text(cache_bytes_), capacity_,
      bytes_text(std::max(arena_bytes(reading), arena_bytes(one_token))));
}

void CachedDecoder::allocate_cache(const Plan& plan) {
  for (const GraphInput& input : plan.graph.inputs()) {
    const std::string& name = plan.graph.name(input.value);
    const Type& type = plan.graph.type(input.value);
    if (is_cache(name)) cache_[name] = backend_.allocate(type.bytes());
    if (name == "window_visible") window_ = type.shape[1];
  }
}

CachedDecoder::Runner CachedDecoder::make(Plan plan, int64_t seq, int64_t length) {
  if (arena_bytes(plan) > arena_->bytes()) {
    // Nobody runs now, and nobody reads results of earlier runs.
    arena_ = backend_.allocate(arena_bytes(plan));
    readers_.clear();
    if (seq > 1) one_token_ = make(this->plan(1, one_token_.length), 1, one_token_.length);
  }
  Runner runner{seq, length, std::make_unique<Executable>(std::move(plan), backend_, arena_), {}};
  const Graph& graph = runner.executable->graph();
  for (const GraphInput& input : graph.inputs()) {
    const std::string& name = graph.name(input.value);
    if (input.role == Role::kInput) {
      auto& buffer = runner.inputs[name] = backend_.allocate(graph.type(input.value).bytes());
      runner.executable->bind(name, buffer->data());
    } else {
      runner.executable->bind(name, is_cache(name) ? cache_.at(name)->data() : model_.address(name));
    }
  }
  return runner;
}

CachedDecoder::Runner& CachedDecoder::reader(int64_t seq, int64_t length) {
  Runner& kept = seq == 1 ? one_token_ : readers_[seq];
  if (kept.executable && kept.length == length) return kept;
  Runner made = make(plan(seq, length), seq, length);
  Runner& place = seq == 1 ? one_token_ : readers_[seq];
  place = std::move(made);
  return place;
}

void CachedDecoder::fill(Runner& runner, const std::string& name, const void* values) {
  const auto found = runner.inputs.find(name);
  if (found == runner.inputs.end()) return;  // not every model has windows, nor positions
  backend_.upload(found->second->data(), values, found->second->bytes());
}

std::span<const float> CachedDecoder::run(Runner& runner) {
  runner.executable->run();
  backend_.download(logits_.data(), runner.executable->output(0),
                    static_cast<int64_t>(logits_.size() * sizeof(float)));
  return logits_;
}

std::span<const float> CachedDecoder::read(std::span<const int32_t> tokens) {
  LOCKSTEP_CHECK(!tokens.empty() && static_cast<int64_t>(tokens.size()) <= capacity_,
                 "{} tokens in a cache of {}", tokens.size(), capacity_);
  tokens_.assign(tokens.begin(), tokens.end());
  return read_all();
}

std::span<const float> CachedDecoder::append(int32_t token) {
  LOCKSTEP_CHECK(static_cast<int64_t>(tokens_.size()) < capacity_, "the cache of {} tokens is full",
                 capacity_);
  tokens_.push_back(token);
  return static_cast<int64_t>(tokens_.size()) <= same_angles_ ? read_last() : read_all();
}

std::span<const float> CachedDecoder::read_all() {
  const auto count = static_cast<int64_t>(tokens_.size());
  const int64_t length = length_of(count), seq = padded(count), pads = seq - count;
  same_angles_ = model_.family().same_angles_up_to(count);
  reader(1, length);
  if (seq == 1) return read_last();
  std::vector<int32_t> tokens(static_cast<size_t>(seq), 0), positions(tokens),
      slots(static_cast<size_t>(seq), -1);
  std::vector<int32_t> window_slots(slots);
  std::vector<uint8_t> visible(static_cast<size_t>(seq), 0);
  for (int64_t p = 0; p < count; ++p) {
    const auto t = static_cast<size_t>(pads + p);
    tokens[t] = tokens_[static_cast<size_t>(p)];
    positions[t] = slots[t] = static_cast<int32_t>(p);
    visible[t] = 1;
    if (window_ > 0 && p >= count - window_) window_slots[t] = static_cast<int32_t>(p % window_);
  }
  Runner& runner = reader(seq, length);
  fill(runner, "tokens", tokens.data());
  fill(runner, "positions", positions.data());
  fill(runner, "slots", slots.data());
  fill(runner, "window_slots", window_slots.data());
  fill(runner, "visible", visible.data());
  return run(runner);
}

std::span<const float> CachedDecoder::read_last() {
  const auto count = static_cast<int64_t>(tokens_.size());
  const auto position = static_cast<int32_t>(count - 1);
  const int32_t window_slot = window_ > 0 ? position % static_cast<int32_t>(window_) : 0;
  std::vector<uint8_t> visible(static_cast<size_t>(std::max(capacity_, window_)), 0);
  Runner& runner = one_token_;
  fill(runner, "tokens", &tokens_.back());
  fill(runner, "positions", &position);
  fill(runner, "slots", &position);
  fill(runner, "window_slots", &window_slot);
  std::fill_n(visible.begin(), count, uint8_t{1});
  fill(runner, "visible", visible.data());
  fill(runner, "window_visible", visible.data());
  return run(runner);
}

}  // namespace lockstep
