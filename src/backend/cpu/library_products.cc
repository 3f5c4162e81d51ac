#include "backend/cpu/library_products.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>

#include "backend/cpu/conv_desc.h"
#include "backend/cpu/matmul_shape.h"
#include "base/error.h"

namespace lockstep::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Clock = std::chrono::steady_clock;

constexpr int kLeastRuns = 3;
constexpr double kLeastMilliseconds = 20;

// The fastest of some runs, after one that is not counted.
template <typename Run>
double fastest(const Run& run) {
  run();
  double best = std::numeric_limits<double>::infinity(), total = 0;
  for (int runs = 0; runs < kLeastRuns || total < kLeastMilliseconds; ++runs) {
    const Clock::time_point start = Clock::now();
    run();
    const double taken = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    best = std::min(best, taken);
    total += taken;
  }
  return best;
}

// Memory with numbers in it: pages that were never written would all be the one page of zeros.
memory filled(const memory::desc& desc) {
  constexpr int kByte = 0x3c;  // of 0.0115, in f32 and bf16
  memory result(desc, onednn::engine());
  if (desc.get_size() > 0) std::memset(result.get_data_handle(), kByte, desc.get_size());
  return result;
}

struct Operand {
  int argument;
  memory::desc desc;
};

double time_primitive(const dnnl::primitive& primitive, const std::vector<Operand>& operands) {
  std::unordered_map<int, memory> args;
  for (const Operand& operand : operands) args.emplace(operand.argument, filled(operand.desc));
  dnnl::stream stream(onednn::engine());
  return fastest([&] {
    primitive.execute(stream, args);
    stream.wait();
  });
}

// The fastest call so far. A call that oneDNN has not for a shape is passed over.
class Fastest {
 public:
  template <typename Time>
  void consider(const char* call, const Time& time) {
    try {
      if (const double taken = time(); call_.empty() || taken < milliseconds_) {
        milliseconds_ = taken;
        call_ = call;
      }
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) onednn::rethrow(error);
    }
  }

  void into(LibraryProduct& product) const {
    if (call_.empty()) throw DeviceError("oneDNN has no call for a {}", product.op);
    product.milliseconds = milliseconds_;
    product.call = call_;
  }

 private:
  double milliseconds_ = 0;
  std::string call_;
};

// ---- matmul
// -------------------------------------------------------------------------------------------------

// `batch` matrices, whose rows lie one after another, or their columns where they are transposed.
memory::desc matrices(int64_t batch, int64_t rows, int64_t columns, bool transposed, memory::data_type type) {
  const memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{columns, 1};
  if (batch == 0) return {{rows, columns}, type, strides};
  return {{batch, rows, columns}, type, {rows * columns, strides[0], strides[1]}};
}

double time_sgemm(const GemmShape& g, float beta) {
  const auto floats = [](int64_t count) { return filled({{count}, memory::data_type::f32, Tag::a}); };
  const memory a = floats(g.m * g.k), b = floats(g.k * g.n), c = floats(g.m * g.n);
  const auto data = [](const memory& values) { return static_cast<float*>(values.get_data_handle()); };
  return fastest([&] {
    const dnnl_status_t status =
        dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, 1.0f, data(a),
                   g.transpose_a ? g.m : g.k, data(b), g.transpose_b ? g.k : g.n, beta, data(c), g.n);
    if (status != dnnl_success) throw dnnl::error(status, "dnnl_sgemm");
  });
}

double time_matmul(const memory::desc& a, const memory::desc& b, const memory::desc& c, bool accumulate) {
  dnnl::primitive_attr attributes;
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc desc({a, b, c}, attributes, onednn::engine());
  return time_primitive(dnnl::matmul(desc), {{DNNL_ARG_SRC, desc.src_desc()},
                                             {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                             {DNNL_ARG_DST, desc.dst_desc()}});
}

LibraryProduct time_matmul_node(const Graph& graph, const Node& node) {
  const MatmulShape shape = matmul_shape(graph, node);
  const GemmShape& g = shape.gemm;
  const memory::data_type type = onednn_type(graph.type(node.inputs[0]).dtype);
  const int64_t batch = shape.batch == 1 ? 0 : shape.batch;
  const memory::desc a = matrices(batch, g.m, g.k, g.transpose_a, type);
  const memory::desc b =
      matrices(shape.stride_b == 0 ? std::min<int64_t>(batch, 1) : batch, g.k, g.n, g.transpose_b, type);
  const memory::desc c = matrices(batch, g.m, g.n, false, onednn_type(graph.type(node.outputs[0]).dtype));
  const auto any = [](const memory::desc& desc) {
    return memory::desc(desc.dims(), desc.data_type(), Tag::any);
  };
  Fastest best;
  if (batch == 0 && type == memory::data_type::f32)
    best.consider("sgemm", [&] { return time_sgemm(g, shape.accumulate ? 1.0f : 0.0f); });
  best.consider("matmul", [&] { return time_matmul(a, b, c, shape.accumulate); });
  best.consider("matmul, right operand packed", [&] { return time_matmul(a, any(b), c, shape.accumulate); });
  best.consider("matmul, its own layouts",
                [&] { return time_matmul(any(a), any(b), any(c), shape.accumulate); });
  LibraryProduct product{"matmul",
                         {{"batch", shape.batch},
                          {"m", g.m},
                          {"n", g.n},
                          {"k", g.k},
                          {"transpose_a", g.transpose_a},
                          {"transpose_b", g.transpose_b},
                          {"one_b", shape.stride_b == 0},
                          {"accumulate", shape.accumulate},
                          {"bf16", type == memory::data_type::bf16}}};
  best.into(product);
  return product;
}

// ---- convolutions
// -------------------------------------------------------------------------------------------

double time_conv(const std::string& op, const ConvDesc& conv) {
  if (op == "conv2d") {
    const auto desc = conv.forward();
    return time_primitive(dnnl::convolution_forward(desc), {{DNNL_ARG_SRC, desc.src_desc()},
                                                            {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                            {DNNL_ARG_DST, desc.dst_desc()},
                                                            {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
  }
  if (op == "conv2d_grad_input") {
    const auto desc = conv.grad_input();
    return time_primitive(dnnl::convolution_backward_data(desc),
                          {{DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                           {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                           {DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
                           {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
  }
  const auto desc = conv.grad_filter();
  return time_primitive(dnnl::convolution_backward_weights(desc),
                        {{DNNL_ARG_SRC, desc.src_desc()},
                         {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                         {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()},
                         {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
}

LibraryProduct time_conv_node(const Graph& graph, const Node& node) {
  const std::string op(node.op->name);
  const ConvShape shape = conv_shape(graph, node);
  const memory::data_type type = onednn_type(graph.type(node.inputs[0]).dtype);
  // Gradients of filters are summed in f32.
  const ConvDesc as_it_lies(shape, shape.batch, type,
                            op == "conv2d_grad_filter" ? memory::data_type::f32 : type);
  ConvDesc any = as_it_lies;
  any.images = {any.images.dims(), type, Tag::any};
  any.results = {any.results.dims(), type, Tag::any};
  Fastest best;
  best.consider("convolution, channels last", [&] { return time_conv(op, as_it_lies); });
  best.consider("convolution, its own layouts", [&] { return time_conv(op, any); });
  const WindowAxis &rows = shape.window.rows, &columns = shape.window.columns;
  LibraryProduct product{op,
                         {{"batch", shape.batch},
                          {"channels", shape.channels},
                          {"outputs", shape.outputs},
                          {"groups", shape.groups},
                          {"rows", rows.input},
                          {"columns", columns.input},
                          {"kernel_rows", rows.kernel},
                          {"kernel_columns", columns.kernel},
                          {"stride_rows", rows.stride},
                          {"stride_columns", columns.stride},
                          {"pad_rows", rows.before},
                          {"pad_columns", columns.before},
                          {"dilation_rows", rows.dilation},
                          {"dilation_columns", columns.dilation},
                          {"bf16", type == memory::data_type::bf16}}};
  best.into(product);
  return product;
}

// What makes two products take the same time: op, operand types, attributes.
std::string key_of(const Graph& graph, const Node& node) {
  std::string key(node.op->name);
  for (const Value input : node.inputs) key += fmt::format(" {}", to_string(graph.type(input)));
  for (const auto& [name, value] : node.attributes.entries())
    key += fmt::format(" {}={}", name, to_string(value));
  return key;
}

}  // namespace

std::vector<LibraryProduct> library_products(const Graph& graph, int threads) {
  omp_set_num_threads(threads);
  std::map<std::string, LibraryProduct> products;
  for (const Node& node : graph.nodes()) {
    const bool matmul = node.op->name == "matmul";
    if (!matmul && !node.op->name.starts_with("conv2d")) continue;
    const auto [product, is_new] = products.try_emplace(key_of(graph, node));
    if (is_new) product->second = matmul ? time_matmul_node(graph, node) : time_conv_node(graph, node);
    ++product->second.count;
  }
  onednn::use_one_thread();
  std::vector<LibraryProduct> list;
  for (auto& [key, product] : products) list.push_back(std::move(product));
  return list;
}

}  // namespace lockstep::cpu
