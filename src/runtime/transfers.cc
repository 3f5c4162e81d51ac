#include "runtime/transfers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/text.h"
#include "ops/gather_unit.h"
#include "runtime/memory.h"

namespace lockstep {
namespace {

CollectiveKind kind_of(const Node& start) {
  struct Named {
    std::string_view op;
    CollectiveKind kind;
  };
  static constexpr std::array kKinds = {Named{"all_reduce_start", CollectiveKind::kAllReduce},
                                        Named{"reduce_to_start", CollectiveKind::kAllReduce},
                                        Named{"reduce_scatter_start", CollectiveKind::kReduceScatter},
                                        Named{"all_gather_start", CollectiveKind::kAllGather},
                                        Named{"broadcast_from_start", CollectiveKind::kBroadcast},
                                        Named{"all_to_all_start", CollectiveKind::kAllToAll},
                                        Named{"send_start", CollectiveKind::kSend},
                                        Named{"recv_start", CollectiveKind::kReceive}};
  for (const Named& named : kKinds)
    if (named.op == start.op->name) return named.kind;
  throw InternalError("nobody runs {}", start.op->name);
}

int64_t rounded_up(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

DType sum_type(DType dtype) { return is_floating(dtype) ? DType::kF32 : DType::kI64; }

PieceLayout whole(const Shape& shape) { return {1, 1, shape.numel(), shape.numel()}; }

// Pieces along an axis, whose places begin at multiples of `multiple` elements.
PieceLayout cut(const Shape& shape, int64_t axis, int64_t pieces, int64_t multiple = 1) {
  const auto at = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
  const int64_t outer = shape.product(0, at);
  const int64_t run = shape.product(at, shape.rank()) / pieces;
  return {pieces, outer, run, rounded_up(outer * run, multiple)};
}

class TransferPlanner {
 public:
  explicit TransferPlanner(const Graph& graph) : graph_(graph) {}

  TransferPlan run(int64_t alignment) {
    const auto nodes = graph_.nodes();
    for (int32_t n = 0; n < static_cast<int32_t>(nodes.size()); ++n) {
      const Node& node = nodes[static_cast<size_t>(n)];
      if (!node.op->traits.collective || gathers_unit(node)) continue;
      if (!node.op->start.empty())
        throw UserError("{} was not split into a start and a done; run the pass split_collectives",
                        to_text(graph_, node));
      if (node.op->is_start()) begin(n, node);
      if (node.op->is_done()) end(n, node);
    }
    give_places(alignment);
    return std::move(plan_);
  }

 private:
  void begin(int32_t n, const Node& node) {
    Transfer transfer;
    transfer.kind = kind_of(node);
    transfer.start = n;
    transfer.group = node.attributes.text("group");
    transfer.size = node.attributes.integer("size");
    if (const Attribute* root = node.attributes.find("root"))
      transfer.root = static_cast<int>(std::get<int64_t>(*root));
    if (const Attribute* peer = node.attributes.find("peer"))
      transfer.peer = static_cast<int>(std::get<int64_t>(*peer));
    lay_out(node, transfer);
    open_.emplace(node.outputs[0].id, plan_.transfers.size());
    plan_.transfers.push_back(std::move(transfer));
  }

  void end(int32_t n, const Node& node) {
    Transfer& transfer = plan_.transfers[open_.at(node.inputs[0].id)];
    transfer.done = n;
    transfer.label = graph_.name(node.outputs[0]);
    const auto between = graph_.nodes().subspan(static_cast<size_t>(transfer.start) + 1,
                                                static_cast<size_t>(n - transfer.start - 1));
    transfer.alone = std::all_of(between.begin(), between.end(), [](const Node& other) {
      return other.op->traits.view && !other.op->traits.collective;
    });
  }

  // Slices of sums and gathers fall on blocks of kSliceBlock elements: pieces are padded to them.
  void lay_out(const Node& node, Transfer& transfer) const {
    const bool receives = transfer.kind == CollectiveKind::kReceive;
    const Type& type = graph_.type(receives ? node.outputs[0] : node.inputs[0]);
    const Shape& result = graph_.type(node.outputs[0]).shape;
    const auto axis = [&](std::string_view name) { return node.attributes.integer(name); };
    transfer.dtype = transfer.staged = type.dtype;
    transfer.operand = receives ? PieceLayout{} : whole(type.shape);
    transfer.result = whole(result);
    switch (transfer.kind) {
      case CollectiveKind::kAllReduce: transfer.staged = sum_type(type.dtype); break;
      case CollectiveKind::kReduceScatter:
        transfer.staged = sum_type(type.dtype);
        transfer.operand = cut(type.shape, axis("axis"), transfer.size, kSliceBlock);
        transfer.result.stride = transfer.operand.stride;
        break;
      case CollectiveKind::kAllGather:
        transfer.result = cut(result, axis("axis"), transfer.size, kSliceBlock);
        transfer.operand.stride = transfer.result.stride;
        break;
      case CollectiveKind::kAllToAll:
        transfer.operand = cut(type.shape, axis("split_axis"), transfer.size);
        transfer.result = cut(result, axis("concat_axis"), transfer.size);
        transfer.result_at = type.bytes();
        break;
      default: break;
    }
    const auto bytes = [&](const PieceLayout& layout) {
      return layout.pieces * layout.stride * size_of(transfer.staged);
    };
    transfer.bytes = std::max(bytes(transfer.operand), transfer.result_at + bytes(transfer.result));
  }

  void give_places(int64_t alignment) {
    std::map<std::string, std::vector<size_t>> members;
    for (size_t i = 0; i < plan_.transfers.size(); ++i) members[plan_.transfers[i].group].push_back(i);
    for (const auto& [group, indices] : members) {
      std::vector<LiveInterval> intervals;
      for (const size_t i : indices) {
        const Transfer& transfer = plan_.transfers[i];
        intervals.push_back({transfer.bytes, transfer.start, transfer.done, MemoryCategory::kScratch, -1});
      }
      const Packing packing = pack_intervals(intervals, alignment);
      for (size_t k = 0; k < indices.size(); ++k) plan_.transfers[indices[k]].offset = packing.offsets[k];
      plan_.buffers[group] = packing.peak;
    }
  }

  const Graph& graph_;
  TransferPlan plan_;
  std::map<int32_t, size_t> open_;  // by the start's result
};

// ---- copying ----

void widen(DType from, const std::byte* source, std::byte* target, int64_t count) {
  auto* floats = reinterpret_cast<float*>(target);
  auto* integers = reinterpret_cast<int64_t*>(target);
  const auto* halves = reinterpret_cast<const uint16_t*>(source);
  switch (from) {
    case DType::kBF16: std::transform(halves, halves + count, floats, from_bf16); break;
    case DType::kF16: std::transform(halves, halves + count, floats, from_f16); break;
    case DType::kI32: std::copy_n(reinterpret_cast<const int32_t*>(source), count, integers); break;
    case DType::kU8: std::copy_n(reinterpret_cast<const uint8_t*>(source), count, integers); break;
    default: throw InternalError("{} is not widened", name_of(from));
  }
}

void narrow(DType to, const std::byte* source, std::byte* target, int64_t count) {
  const auto* floats = reinterpret_cast<const float*>(source);
  const auto* integers = reinterpret_cast<const int64_t*>(source);
  auto* halves = reinterpret_cast<uint16_t*>(target);
  switch (to) {
    case DType::kBF16: std::transform(floats, floats + count, halves, to_bf16); break;
    case DType::kF16: std::transform(floats, floats + count, halves, to_f16); break;
    case DType::kI32:
      std::transform(integers, integers + count, reinterpret_cast<int32_t*>(target),
                     [](int64_t x) { return static_cast<int32_t>(x); });
      break;
    case DType::kU8:
      std::transform(integers, integers + count, reinterpret_cast<uint8_t*>(target),
                     [](int64_t x) { return static_cast<uint8_t>(x); });
      break;
    default: throw InternalError("nothing is narrowed to {}", name_of(to));
  }
}

// Calls body(element of the tensor, element of the buffer) for every run.
template <typename Body>
void for_each_run(const PieceLayout& layout, const Body& body) {
  for (int64_t piece = 0; piece < layout.pieces; ++piece)
    for (int64_t outer = 0; outer < layout.outer; ++outer)
      body((outer * layout.pieces + piece) * layout.run, piece * layout.stride + outer * layout.run);
}

}  // namespace

int64_t TransferPlan::bytes() const {
  return std::accumulate(buffers.begin(), buffers.end(), int64_t{0},
                         [](int64_t sum, const auto& buffer) { return sum + buffer.second; });
}

TransferPlan plan_transfers(const Graph& graph, int64_t alignment) {
  return TransferPlanner(graph).run(alignment);
}

void pack(const Transfer& transfer, const void* tensor, std::byte* operand) {
  const auto* from = static_cast<const std::byte*>(tensor);
  const PieceLayout& layout = transfer.operand;
  for_each_run(layout, [&](int64_t element, int64_t at) {
    const std::byte* source = from + element * size_of(transfer.dtype);
    std::byte* target = operand + at * size_of(transfer.staged);
    if (transfer.dtype == transfer.staged)
      std::memcpy(target, source, static_cast<size_t>(layout.run * size_of(transfer.dtype)));
    else
      widen(transfer.dtype, source, target, layout.run);
  });
}

void unpack(const Transfer& transfer, const std::byte* result, void* tensor) {
  auto* to = static_cast<std::byte*>(tensor);
  const PieceLayout& layout = transfer.result;
  for_each_run(layout, [&](int64_t element, int64_t at) {
    const std::byte* source = result + at * size_of(transfer.staged);
    std::byte* target = to + element * size_of(transfer.dtype);
    if (transfer.dtype == transfer.staged)
      std::memcpy(target, source, static_cast<size_t>(layout.run * size_of(transfer.dtype)));
    else
      narrow(transfer.dtype, source, target, layout.run);
  });
}

}  // namespace lockstep
