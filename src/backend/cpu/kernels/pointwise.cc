// Any pointwise op in f32 arithmetic: a tile program of one op. Operands may be f32, bf16, f16, u8 or bool,
// and i32 where the result is floating (a cast).
#include "backend/cpu/scalar_of.h"
#include "backend/cpu/tile_program.h"

namespace lockstep::cpu {
namespace {

TileCode code_for(const Graph& graph, const Node& node) {
  const Type& out = graph.type(node.outputs[0]);
  TileCode code{.shape = out.shape};
  std::vector<TileSource> arguments;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    code.operands.push_back(graph.type(node.inputs[i]));
    arguments.push_back(TileSource::operand(static_cast<int>(i)));
  }
  code.results = {append_pointwise(code.instructions, *node.op, node.attributes, arguments, out.dtype)};
  return code;
}

class Pointwise : public Kernel {
 public:
  Pointwise(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), program_(code_for(graph, node)) {}

  void run(const KernelArgs& args) override { program_.run(context_, args); }
  int64_t workspace_bytes() const override { return program_.workspace_bytes(context_); }

 private:
  CpuContext context_;
  TileProgram program_;
};

}  // namespace

KernelDef pointwise_kernel() {
  return {kAnyPointwise, "cpu.pointwise", refuse_as_tile, make_kernel<Pointwise>};
}

}  // namespace lockstep::cpu
