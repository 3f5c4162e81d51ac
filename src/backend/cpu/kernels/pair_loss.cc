// bce_with_logits and mse: losses that add one term per pair of elements; and the gradient of the first.
// Where there are weights, a term counts as often as its weight says.
//
// Terms are made in pieces that stay in cache; a piece is summed in rows fixed by its length, and pieces are
// added in index order in double.
#include <algorithm>
#include <array>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/storage.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kPiece = 2048;
constexpr int64_t kRow = 256;
constexpr int64_t kPiecesPerTask = kTaskElements / kPiece;
using Piece = std::array<float, kPiece>;

// values[i] *= weights[first + i]; weights are f32.
void weigh(const Simd& simd, const void* weights, int64_t first, int64_t count, float* values) {
  simd.pointwise.tile[static_cast<size_t>(Scalar::mul)](
      values, values, static_cast<const float*>(weights) + first, nullptr, count);
}

class PairLoss : public Kernel {
 public:
  PairLoss(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        binary_(node.op->name == "bce_with_logits"),
        first_(graph.type(node.inputs[0])),
        second_dtype_(graph.type(node.inputs[1]).dtype),
        weighted_(node.inputs.size() == 3),
        pieces_(ceil_div(first_.shape.numel(), kPiece)) {}

  int64_t workspace_bytes() const override { return pieces_ * static_cast<int64_t>(sizeof(double)); }

  void run(const KernelArgs& args) override {
    auto* partial = static_cast<double*>(args.workspace);
    const int64_t numel = first_.shape.numel();
    for_rows(context_, pieces_, kPiecesPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t first = piece * kPiece;
        partial[piece] = sum_piece(args, first, std::min(kPiece, numel - first));
      }
    });
    double total = 0;
    for (int64_t piece = 0; piece < pieces_; ++piece) total += partial[piece];
    *static_cast<float*>(args.outputs[0]) = static_cast<float>(total);
    *static_cast<int64_t*>(args.outputs[1]) = numel;
  }

 private:
  double sum_piece(const KernelArgs& args, int64_t first, int64_t count) const {
    const Simd& simd = context_.simd;
    Piece a_floats;
    Piece b_floats;
    Piece terms;
    const float* a = read_floats(simd, first_.dtype, args.inputs[0], first, count, a_floats.data());
    const float* b = read_floats(simd, second_dtype_, args.inputs[1], first, count, b_floats.data());
    if (binary_) {
      simd.softmax.binary_cross_entropy(terms.data(), a, b, count);
    } else {
      simd.pointwise.tile[static_cast<size_t>(Scalar::sub)](terms.data(), a, b, nullptr, count);
      simd.pointwise.tile[static_cast<size_t>(Scalar::square)](terms.data(), terms.data(), nullptr, nullptr,
                                                               count);
    }
    if (weighted_) weigh(simd, args.inputs[2], first, count, terms.data());
    std::array<float, kPiece / kRow + 1> rows{};
    const int64_t whole = count / kRow;
    simd.reduce.row_sum(rows.data(), terms.data(), whole, kRow);
    if (count % kRow != 0)
      simd.reduce.row_sum(rows.data() + whole, terms.data() + whole * kRow, 1, count % kRow);
    double sum = 0;
    for (const float row : rows) sum += static_cast<double>(row);
    return sum;
  }

  CpuContext context_;
  bool binary_;
  Type first_;
  DType second_dtype_;
  bool weighted_;
  int64_t pieces_;
};

class BceGrad : public Kernel {
 public:
  BceGrad(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        logits_(graph.type(node.inputs[1])),
        labels_dtype_(graph.type(node.inputs[2]).dtype),
        weighted_(node.inputs.size() == 4) {}

  void run(const KernelArgs& args) override {
    const float scale = *static_cast<const float*>(args.inputs[0]);
    const int64_t numel = logits_.shape.numel();
    for_rows(context_, ceil_div(numel, kPiece), kPiecesPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin * kPiece; first < std::min(end * kPiece, numel); first += kPiece)
        run_piece(args, scale, first, std::min(kPiece, numel - first));
    });
  }

 private:
  void run_piece(const KernelArgs& args, float scale, int64_t first, int64_t count) const {
    const Simd& simd = context_.simd;
    Piece logit_floats;
    Piece label_floats;
    const float* logits = read_floats(simd, logits_.dtype, args.inputs[1], first, count, logit_floats.data());
    const float* labels = read_floats(simd, labels_dtype_, args.inputs[2], first, count, label_floats.data());
    float* dlogits = floats_to_write(logits_.dtype, args.outputs[0], first, logit_floats.data());
    simd.softmax.binary_cross_entropy_backward(dlogits, logits, labels, scale, count);
    if (weighted_) weigh(simd, args.inputs[3], first, count, dlogits);
    write_floats(simd, logits_.dtype, args.outputs[0], first, count, dlogits);
  }

  CpuContext context_;
  Type logits_;
  DType labels_dtype_;
  bool weighted_;
};

}  // namespace

KernelDef bce_with_logits_kernel() {
  return {"bce_with_logits", "cpu.bce_with_logits", refuse_nothing, make_kernel<PairLoss>};
}
KernelDef mse_kernel() { return {"mse", "cpu.mse", refuse_nothing, make_kernel<PairLoss>}; }
KernelDef bce_with_logits_grad_kernel() {
  return {"bce_with_logits_grad", "cpu.bce_with_logits_grad", refuse_nothing, make_kernel<BceGrad>};
}

}  // namespace lockstep::cpu
