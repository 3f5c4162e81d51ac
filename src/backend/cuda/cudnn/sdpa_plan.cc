#include "backend/cuda/cudnn/sdpa_plan.h"

#include <cudnn_frontend.h>

#include <unordered_map>

#include "base/error.h"

namespace lockstep::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Uid : int64_t { kQ = 1, kK, kV, kOut, kStats, kDout, kDq, kDk, kDv };

void check(fe::error_t error, const char* what) {
  if (error.is_bad()) throw DeviceError("cuDNN: {}: {}", what, error.get_message());
}

fe::DataType_t data_type(DType dtype) {
  return dtype == DType::kBF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
}

Tensor heads(fe::graph::Graph& graph, const char* name, Uid uid, int64_t batch, int64_t heads, int64_t rows,
             int64_t width, const HeadLayout& layout) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(uid)
                          .set_dim({batch, heads, rows, width})
                          .set_stride({layout.batch, layout.head, layout.row, 1}));
}

void set_result(const Tensor& tensor, Uid uid, int64_t batch, int64_t heads, int64_t rows, int64_t width,
                const HeadLayout& layout) {
  tensor->set_output(true)
      .set_uid(uid)
      .set_dim({batch, heads, rows, width})
      .set_stride({layout.batch, layout.head, layout.row, 1});
}

Tensor statistics(fe::graph::Graph& graph, const AttentionShape& s) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name("stats")
                          .set_uid(kStats)
                          .set_dim({s.batch, s.heads, s.queries, 1})
                          .set_stride({s.heads * s.queries, s.queries, 1, 1})
                          .set_data_type(fe::DataType_t::FLOAT));
}

template <typename Options>
void set_mask(Options& options, const AttentionShape& s) {
  if (s.causal || s.window > 0) {
    // Query i stands at position i + S - T.
    options.set_diagonal_alignment(s.queries == s.keys ? fe::DiagonalAlignment_t::TOP_LEFT
                                                       : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
    options.set_diagonal_band_right_bound(0);
  }
  if (s.window > 0) options.set_diagonal_band_left_bound(static_cast<int>(s.window));
}

}  // namespace

struct SdpaPlan::Graph {
  fe::graph::Graph graph;
};

std::string SdpaPlan::refusal(const AttentionShape& s) {
  if (s.dtype == DType::kF32) return "heads are f32";
  if (s.keys_visible != nullptr || s.documents != nullptr) return "keys or documents are masked";
  if (s.head_dim % 8 != 0 || s.head_dim > 128) return "the width of a head is not a multiple of 8 up to 128";
  const int64_t version = cudnn().version;
  if (version < 90600) return "cuDNN is older than 9.6";
  // Up to 9.15.0 such lengths make the front end write from the host into a graph (9.15.1 fixed it).
  if (version < 91501 && s.keys % 128 != 0)
    return "the keys are no multiple of 128, which cuDNN before 9.15.1 needs";
  if (s.window > 0 && !s.causal && version < 91401 && s.keys > 1024)
    return "cuDNN 9.14.0 gives wrong results for a window over more than 1024 keys";
  return "";
}

SdpaPlan::SdpaPlan(cudnnHandle_t handle, const AttentionShape& s, Direction direction, bool deterministic)
    : graph_(std::make_unique<Graph>()) {
  fe::graph::Graph& g = graph_->graph;
  g.set_io_data_type(data_type(s.dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const Tensor q = heads(g, "q", kQ, s.batch, s.heads, s.queries, s.head_dim, s.q);
  const Tensor k = heads(g, "k", kK, s.batch, s.kv_heads, s.keys, s.head_dim, s.k);
  const Tensor v = heads(g, "v", kV, s.batch, s.kv_heads, s.keys, s.head_dim, s.v);
  if (direction == Direction::kForward) {
    auto options =
        fe::graph::SDPA_attributes().set_name("sdpa").set_generate_stats(true).set_attn_scale(s.scale);
    set_mask(options, s);
    auto [out, stats] = g.sdpa(q, k, v, options);
    set_result(out, kOut, s.batch, s.heads, s.queries, s.head_dim, s.out);
    stats->set_output(true)
        .set_uid(kStats)
        .set_dim({s.batch, s.heads, s.queries, 1})
        .set_stride({s.heads * s.queries, s.queries, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
  } else {
    const Tensor out = heads(g, "out", kOut, s.batch, s.heads, s.queries, s.head_dim, s.out);
    const Tensor dout = heads(g, "dout", kDout, s.batch, s.heads, s.queries, s.head_dim, s.out);
    auto options = fe::graph::SDPA_backward_attributes()
                       .set_name("sdpa_backward")
                       .set_attn_scale(s.scale)
                       .set_deterministic_algorithm(deterministic);
    set_mask(options, s);
    auto [dq, dk, dv] = g.sdpa_backward(q, k, v, out, dout, statistics(g, s), options);
    set_result(dq, kDq, s.batch, s.heads, s.queries, s.head_dim, s.q);
    set_result(dk, kDk, s.batch, s.kv_heads, s.keys, s.head_dim, s.k);
    set_result(dv, kDv, s.batch, s.kv_heads, s.keys, s.head_dim, s.v);
  }
  check(g.validate(), "an attention graph");
  check(g.build_operation_graph(handle), "an attention graph");
  check(g.create_execution_plans({fe::HeurMode_t::A}), "plans for attention");
  check(g.check_support(handle), "support for attention");
  check(g.build_plans(handle), "building a plan for attention");
}

SdpaPlan::SdpaPlan(cudnnHandle_t handle, const std::vector<uint8_t>& serialized)
    : graph_(std::make_unique<Graph>()) {
  // Without the trial run of the front end, which records on a stream that all others would have to wait for.
  constexpr bool kEnforcesPrecompiled = false, kTries = false;
  check(graph_->graph.deserialize(handle, serialized, kEnforcesPrecompiled, kTries),
        "reading a stored plan for attention");
}

SdpaPlan::~SdpaPlan() = default;
SdpaPlan::SdpaPlan(SdpaPlan&&) noexcept = default;

int64_t SdpaPlan::workspace_bytes() const {
  int64_t bytes = 0;
  check(graph_->graph.get_workspace_size(bytes), "the workspace of attention");
  return bytes;
}

std::vector<uint8_t> SdpaPlan::serialized() const {
  std::vector<uint8_t> data;
  check(graph_->graph.serialize(data), "storing a plan for attention");
  return data;
}

std::string SdpaPlan::plan_name() const {
  std::string name;
  if (graph_->graph.get_plan_name(name).is_bad()) return "?";
  return name;
}

void SdpaPlan::forward(cudnnHandle_t handle, const void* q, const void* k, const void* v, void* out,
                       float* lse, void* workspace) const {
  std::unordered_map<int64_t, void*> pack{{kQ, const_cast<void*>(q)},
                                          {kK, const_cast<void*>(k)},
                                          {kV, const_cast<void*>(v)},
                                          {kOut, out},
                                          {kStats, lse}};
  check(graph_->graph.execute(handle, pack, workspace), "attention");
}

void SdpaPlan::backward(cudnnHandle_t handle, const void* dout, const void* q, const void* k, const void* v,
                        const void* out, const float* lse, void* dq, void* dk, void* dv,
                        void* workspace) const {
  std::unordered_map<int64_t, void*> pack{{kQ, const_cast<void*>(q)},
                                          {kK, const_cast<void*>(k)},
                                          {kV, const_cast<void*>(v)},
                                          {kOut, const_cast<void*>(out)},
                                          {kStats, const_cast<float*>(lse)},
                                          {kDout, const_cast<void*>(dout)},
                                          {kDq, dq},
                                          {kDk, dk},
                                          {kDv, dv}};
  check(graph_->graph.execute(handle, pack, workspace), "the gradient of attention");
}

}  // namespace lockstep::cuda
