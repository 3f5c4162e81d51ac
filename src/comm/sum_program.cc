#include "comm/sum_program.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "comm/leaf_stack.h"
#include "comm/simd/sum_loops.h"

namespace lockstep {
namespace {

constexpr int64_t kBlockBytes = 4096;
// Of sums that need no scratch: what is done once a block counts less.
constexpr int64_t kLongBlockBytes = 64 << 10;
constexpr size_t kLine = 64;

struct Node {
  int64_t left = -1;  // -1: a source
  int64_t right = -1;
};

// The expression that the tree over all parts is; its last node is the root.
std::vector<Node> expression(int64_t leaves, std::span<const LeafRange> parts) {
  std::vector<Node> nodes(parts.size());
  std::vector<int64_t> slots;  // node held by each slot of the stack
  LeafStack stack(leaves);
  int64_t source = 0;
  for (const LeafRange& part : parts) {
    slots.push_back(source++);
    stack.push(part, [&](int64_t into, int64_t from) {
      nodes.push_back({slots[static_cast<size_t>(into)], slots[static_cast<size_t>(from)]});
      slots.pop_back();
      slots.back() = static_cast<int64_t>(nodes.size()) - 1;
    });
  }
  LOCKSTEP_CHECK(slots.size() == 1, "{} subtrees are left of {} parts", slots.size(), parts.size());
  return nodes;
}

std::vector<LeafRange> all_partials(const LeafSplit& split) {
  std::vector<LeafRange> all;
  for (int rank = 0; rank < split.ranks(); ++rank)
    all.insert(all.end(), split.partials(rank).begin(), split.partials(rank).end());
  return all;
}

// Blocks that a tree over 256 sources needs; they fit in the L1 cache.
constexpr int64_t kStackBlocks = 5;
// More outputs at a time than a core can combine into whole lines would be slower than one after the other.
constexpr size_t kMaxOutputs = 4;

template <typename T>
const T* as(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}
template <typename T>
T* as(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

}  // namespace

SumProgram::SumProgram(const LeafSplit& split) : SumProgram(split.leaves(), all_partials(split)) {
  split_ = split;
  widest_ = split.max_partials();
}

SumProgram::SumProgram(int64_t leaves, std::span<const LeafRange> parts)
    : sources_(static_cast<int64_t>(parts.size())), widest_(sources_) {
  const std::vector<Node> nodes = expression(leaves, parts);
  const auto is_source = [&](int64_t node) { return nodes[static_cast<size_t>(node)].left < 0; };

  // Depth first: the scratch in use at any time is a stack, and its blocks are few enough for the L1 cache.
  const auto emit = [&](const auto& self, int64_t node, int64_t free_block) -> int64_t {
    if (is_source(node)) return node;
    const Node& sum = nodes[static_cast<size_t>(node)];
    Step step{sources_ + free_block, {}};
    int64_t next = free_block;
    const auto operand = [&](int64_t child) {
      const int64_t value = self(self, child, next);
      if (value >= sources_) ++next;
      step.operands.push_back(value);
    };
    const bool both_inner = !is_source(sum.left) && !is_source(sum.right);
    for (const int64_t child : {sum.left, sum.right}) {
      if (!both_inner) {
        operand(child);
        continue;
      }
      operand(nodes[static_cast<size_t>(child)].left);
      operand(nodes[static_cast<size_t>(child)].right);
    }
    scratch_blocks_ = std::max({scratch_blocks_, next, free_block + 1});
    steps_.push_back(std::move(step));
    return sources_ + free_block;
  };
  emit(emit, static_cast<int64_t>(nodes.size()) - 1, 0);
}

struct SumProgram::Block {
  SumType type;
  std::span<const std::byte* const> operands;
  int64_t elements;
  const std::byte* operand(const Step& step, size_t i) const {
    return operands[static_cast<size_t>(step.operands[i])];
  }
};

void SumProgram::run(SumType type, std::span<const std::byte* const> sources,
                     std::span<std::byte* const> outputs, int64_t count, bool streaming) const {
  LOCKSTEP_CHECK(static_cast<int64_t>(sources.size()) == sources_, "{} sources instead of {}", sources.size(),
                 sources_);
  alignas(kLine) std::array<std::byte, kStackBlocks * kBlockBytes> near;
  std::vector<std::byte> far(
      static_cast<size_t>(scratch_blocks_ > kStackBlocks ? scratch_blocks_ * kBlockBytes : 0));
  std::byte* const scratch = far.empty() ? near.data() : far.data();
  const int64_t width = size_of(type);
  LOCKSTEP_CHECK(width <= kBlockBytes, "elements of {} bytes", width);
  std::vector<const std::byte*> operands(sources.begin(), sources.end());
  for (int64_t i = 0; i < scratch_blocks_; ++i) operands.push_back(scratch + i * kBlockBytes);

  const int64_t block_bytes = steps_.size() == 1 && type == SumType::kF32 && outputs.size() <= kMaxOutputs
                                  ? kLongBlockBytes
                                  : kBlockBytes / width * width;
  for (int64_t done = 0; done < count * width; done += block_bytes) {
    const int64_t bytes = std::min(block_bytes, count * width - done);
    for (size_t i = 0; i < sources.size(); ++i) operands[i] = sources[i] + done;
    const Block block{type, operands, bytes / width};
    for (size_t i = 0; i + 1 < steps_.size(); ++i)
      run_step(steps_[i], block, scratch + (steps_[i].into - sources_) * kBlockBytes);

    const std::byte* root = operands[0];
    if (!steps_.empty()) {
      if (root_to_all(block, outputs, done, streaming)) continue;
      std::byte* const into = streaming ? scratch : outputs[0] + done;
      run_step(steps_.back(), block, into);
      root = into;
    }
    for (std::byte* output : outputs) {
      if (output + done == root) continue;
      if (streaming)
        comm::sum_loops().stream(output + done, root, bytes);
      else
        comm::sum_loops().copy(output + done, root, bytes);
    }
  }
  // Streamed stores are ordered by nothing else: whoever is told next must find them.
  if (streaming) _mm_sfence();
}

void SumProgram::run_step(const Step& step, const Block& block, std::byte* into) const {
  const comm::SumLoops& loops = comm::sum_loops();
  const auto operand = [&](size_t i) { return block.operand(step, i); };
  const int64_t n = block.elements;
  const bool four = step.operands.size() == 4;
  if (block.type == SumType::kInt8) {
    alignas(kLine) std::byte right[kBlockBytes];
    const comm::CodecLoops& codec = comm::codec_loops();
    if (four) codec.add2_int8(right, operand(2), operand(3), n);
    codec.add2_int8(into, operand(0), operand(1), n);
    if (four) codec.add2_int8(into, into, right, n);
  } else if (block.type == SumType::kI64) {
    // The right pair first: `into` may be what holds one of them.
    alignas(kLine) std::byte right[kBlockBytes];
    if (four) loops.add2_i64(as<int64_t>(right), as<int64_t>(operand(2)), as<int64_t>(operand(3)), n);
    loops.add2_i64(as<int64_t>(into), as<int64_t>(operand(0)), as<int64_t>(operand(1)), n);
    if (four) loops.add2_i64(as<int64_t>(into), as<int64_t>(into), as<int64_t>(right), n);
  } else if (block.type == SumType::kBF16) {
    if (four)
      loops.add4_bf16(as<uint16_t>(into), as<uint16_t>(operand(0)), as<uint16_t>(operand(1)),
                      as<uint16_t>(operand(2)), as<uint16_t>(operand(3)), n);
    else
      loops.add2_bf16(as<uint16_t>(into), as<uint16_t>(operand(0)), as<uint16_t>(operand(1)), n);
  } else if (four) {
    loops.add4_f32(as<float>(into), as<float>(operand(0)), as<float>(operand(1)), as<float>(operand(2)),
                   as<float>(operand(3)), n);
  } else {
    loops.add2_f32(as<float>(into), as<float>(operand(0)), as<float>(operand(1)), n);
  }
}

bool SumProgram::root_to_all(const Block& block, std::span<std::byte* const> outputs, int64_t done,
                             bool streaming) const {
  if (block.type != SumType::kF32 || outputs.size() > kMaxOutputs || block.elements % 16 != 0) return false;
  std::array<float*, kMaxOutputs> into{};
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (streaming && reinterpret_cast<uintptr_t>(outputs[i] + done) % kLine != 0) return false;
    into[i] = as<float>(outputs[i] + done);
  }
  const Step& last = steps_.back();
  std::array<const float*, 4> from{};
  for (size_t i = 0; i < last.operands.size(); ++i) from[i] = as<float>(block.operand(last, i));
  const comm::SumLoops& loops = comm::sum_loops();
  (streaming ? loops.sum_past_to_all_f32 : loops.sum_to_all_f32)(
      into.data(), static_cast<int64_t>(outputs.size()), from.data(),
      static_cast<int64_t>(last.operands.size()), block.elements);
  return true;
}

}  // namespace lockstep
