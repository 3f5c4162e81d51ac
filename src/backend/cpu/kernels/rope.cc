// rope: turns heads by tables of cosines and sines made once, in place where the plan allows.
#include <cstring>

#include "backend/cpu/float_staging.h"
#include "backend/cpu/rope_tables.h"
#include "backend/cpu/simd/simd.h"
#include "base/error.h"
#include "ops/rope_frequencies.h"

namespace lockstep::cpu {
namespace {

class Rope : public Kernel {
 public:
  Rope(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), staging_(context), shape_(graph.type(node.inputs[0]).shape) {
    const Type& type = graph.type(node.inputs[0]);
    const auto or_else = [&](std::string_view name, int64_t otherwise) {
      const int64_t given = node.attributes.integer(name);
      return given == 0 ? otherwise : given;
    };
    rotation_.batch = shape_[0];
    rotation_.tokens = shape_[1];
    rotation_.heads = or_else("heads", shape_[2]);
    rotation_.head_dim = shape_[3];
    rotation_.rotary_dim = or_else("rotary_dim", shape_[3]);
    rotation_.interleaved = node.attributes.flag("interleaved");
    rotation_.inverse = node.attributes.flag("inverse");
    rotation_.x_strides =
        rotation_.y_strides = {shape_[2] * shape_[3], shape_[3], shape_[1] * shape_[2] * shape_[3]};
    positions_ = or_else("max_position", shape_[1]);
    tables_ = rope_tables(context, rope_frequencies(node.attributes, rotation_.rotary_dim / 2),
                          static_cast<float>(node.attributes.number("factor")), positions_);
    rotation_.cos = tables_->cos.data();
    rotation_.sin = tables_->sin.data();
    if (node.inputs.size() == 2) positions_name_ = graph.name(node.inputs[1]);
    in_ = staging_.add(type);
    // A 16-bit operand is turned where it was converted.
    out_ = type.dtype == DType::kF32 ? staging_.add(type) : in_;
  }

  int64_t workspace_bytes() const override { return staging_.bytes(); }

  void run(const KernelArgs& args) override {
    RopeRotation rotation = rotation_;
    if (args.inputs.size() == 2) rotation.positions = static_cast<const int32_t*>(args.inputs[1]);
    rotation.x = staging_.read(in_, args.inputs[0], args.workspace);
    rotation.y = staging_.target(out_, args.outputs[0], args.workspace);
    const int64_t row = shape_[2] * shape_[3];
    const int64_t turned = rotation.heads * rotation.head_dim;
    for_rows(context_, shape_[0] * shape_[1], rows_per_task(row), [&](int64_t begin, int64_t end) {
      check_positions(rotation.positions, begin, end);
      context_.simd.rope.rotate(rotation, begin, end);
      if (turned == row || rotation.y == rotation.x) return;
      for (int64_t token = begin; token < end; ++token)
        std::memcpy(rotation.y + token * row + turned, rotation.x + token * row + turned,
                    static_cast<size_t>(row - turned) * sizeof(float));
    });
    staging_.write(out_, args.outputs[0], args.workspace);
  }

 private:
  void check_positions(const int32_t* positions, int64_t begin, int64_t end) const {
    if (positions == nullptr) return;
    for (int64_t token = begin; token < end; ++token)
      if (positions[token] < 0 || positions[token] >= positions_)
        throw UserError("rope: {}[{},{}] is {}, outside [0, {}); max_position is the number of positions",
                        positions_name_, token / shape_[1], token % shape_[1], positions[token], positions_);
  }

  CpuContext context_;
  FloatStaging staging_;
  Shape shape_;
  RopeRotation rotation_{};
  std::shared_ptr<const RopeTables> tables_;
  int64_t positions_ = 0;
  std::string positions_name_;
  int in_ = 0;
  int out_ = 0;
};

}  // namespace

KernelDef rope_kernel() { return {"rope", "cpu.rope", refuse_nothing, make_kernel<Rope>}; }

}  // namespace lockstep::cpu
