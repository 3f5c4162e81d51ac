// conv2d(x, filter), and its two gradients conv2d_grad_input(dy, filter) and conv2d_grad_filter(x, dy).
//
// x is [N, H, W, C], filter [O, KH, KW, C / groups], the result [N, OH, OW, O]. All three share the
// attributes stride, padding, dilation and groups; the gradients add the extents that cannot be told from
// their operands. All three are linear in each operand, so each one's gradients are the other two.
#include "ops/builder.h"
#include "ops/conv_shape.h"

namespace lockstep {
namespace {

std::vector<AttributeDef> conv_attributes() {
  return {stride_attribute("[rows, columns] between neighbouring results", {1, 1}), padding_attribute(),
          dilation_attribute(), AttributeDef{"groups", int64_t{1}, "independent groups of channels"}};
}

// The attributes of a gradient op, made from those of its forward or fellow node.
Attributes with_extra(const Attributes& from, std::string_view name = {}, std::vector<int64_t> value = {}) {
  Attributes result;
  for (const char* shared : {"stride", "padding", "dilation", "groups"})
    result.set(shared, *from.find(shared));
  if (!name.empty()) result.set(name, std::move(value));
  return result;
}

void require_images(const InferContext& c, int operand) {
  if (c.shape(operand).rank() != 4)
    c.fail("operand {} must have 4 axes [batch, rows, columns, channels]; it has {}", operand,
           c.shape(operand).rank());
}

void require_filter(const InferContext& c, int operand) {
  if (c.shape(operand).rank() != 4)
    c.fail("the filter must have 4 axes [outputs, kernel rows, kernel columns, channels / groups]; it has {}",
           c.shape(operand).rank());
}

int64_t checked_groups(const InferContext& c, int64_t outputs) {
  const int64_t groups = c.attributes().integer("groups");
  if (groups < 1) c.fail("groups is {}; use at least 1", groups);
  if (outputs < 1 || outputs % groups != 0)
    c.fail("{} output channels do not divide into {} groups; use a multiple of groups", outputs, groups);
  return groups;
}

void check_channels(const InferContext& c, int64_t channels, int64_t per_group, int64_t groups) {
  if (channels < 1 || channels != per_group * groups)
    c.fail("the images have {} channels but the filter takes {} x {} groups; make the filter's last axis {}",
           channels, per_group, groups, channels / groups);
}

void check_gradient(const InferContext& c, int operand, const Shape& wanted) {
  if (c.shape(operand) != wanted)
    c.fail("dy (operand {}) must have the shape of the convolution's result, {}", operand, to_string(wanted));
}

void require_same_dtype(const InferContext& c) {
  c.require_floating(0);
  if (c.type(1).dtype != c.type(0).dtype) c.fail("operands have different element types; cast one of them");
}

std::vector<Type> infer_forward(const InferContext& c) {
  require_same_dtype(c);
  require_images(c, 0);
  require_filter(c, 1);
  const Shape& x = c.shape(0);
  const Shape& filter = c.shape(1);
  check_channels(c, x[3], filter[3], checked_groups(c, filter[0]));
  const Window window = checked_window(c, {x[1], x[2]}, {filter[1], filter[2]});
  return {{c.type(0).dtype, Shape{x[0], window.rows.output, window.columns.output, filter[0]}}};
}

std::vector<Type> infer_grad_input(const InferContext& c) {
  require_same_dtype(c);
  require_images(c, 0);
  require_filter(c, 1);
  const Shape& dy = c.shape(0);
  const Shape& filter = c.shape(1);
  const int64_t groups = checked_groups(c, filter[0]);
  const auto [rows, columns] = checked_pair(c, "extent", 1);
  const Window window = checked_window(c, {rows, columns}, {filter[1], filter[2]});
  check_gradient(c, 0, {dy[0], window.rows.output, window.columns.output, filter[0]});
  return {{c.type(0).dtype, Shape{dy[0], rows, columns, filter[3] * groups}}};
}

std::vector<Type> infer_grad_filter(const InferContext& c) {
  require_same_dtype(c);
  require_images(c, 0);
  require_images(c, 1);
  const Shape& x = c.shape(0);
  const Shape& dy = c.shape(1);
  const int64_t groups = checked_groups(c, dy[3]);
  if (x[3] < 1 || x[3] % groups != 0) c.fail("{} input channels do not divide into {} groups", x[3], groups);
  const auto [rows, columns] = checked_pair(c, "kernel", 1);
  const Window window = checked_window(c, {x[1], x[2]}, {rows, columns});
  check_gradient(c, 1, {x[0], window.rows.output, window.columns.output, dy[3]});
  return {{c.type(0).dtype, Shape{dy[3], rows, columns, x[3] / groups}}};
}

std::vector<int64_t> image_extent(const Shape& images) { return {images[1], images[2]}; }

Value emit_forward(GradientContext& c, Value x, Value filter) {
  return c.graph.emit("conv2d", {x, filter}, with_extra(c.attributes()));
}
Value emit_grad_input(GradientContext& c, Value dy, Value filter, const Shape& x) {
  return c.graph.emit("conv2d_grad_input", {dy, filter},
                      with_extra(c.attributes(), "extent", image_extent(x)));
}
Value emit_grad_filter(GradientContext& c, Value x, Value dy, const Shape& filter) {
  return c.graph.emit("conv2d_grad_filter", {x, dy},
                      with_extra(c.attributes(), "kernel", image_extent(filter)));
}

std::vector<Value> gradient_forward(GradientContext& c) {
  std::vector<Value> grads(2);
  if (c.needed[0]) grads[0] = emit_grad_input(c, c.grad(), c.in(1), c.type(c.in(0)).shape);
  if (c.needed[1]) grads[1] = emit_grad_filter(c, c.in(0), c.grad(), c.type(c.in(1)).shape);
  return grads;
}

std::vector<Value> gradient_grad_input(GradientContext& c) {
  std::vector<Value> grads(2);
  if (c.needed[0]) grads[0] = emit_forward(c, c.grad(), c.in(1));
  if (c.needed[1]) grads[1] = emit_grad_filter(c, c.grad(), c.in(0), c.type(c.in(1)).shape);
  return grads;
}

std::vector<Value> gradient_grad_filter(GradientContext& c) {
  std::vector<Value> grads(2);
  if (c.needed[0]) grads[0] = emit_grad_input(c, c.in(1), c.grad(), c.type(c.in(0)).shape);
  if (c.needed[1]) grads[1] = emit_forward(c, c.in(0), c.grad());
  return grads;
}

// Calls body(x index, filter index, y index) for every product of the convolution.
template <typename Body>
void for_each_product(const Shape& x, const Shape& filter, const Shape& y, const Attributes& attributes,
                      const Body& body) {
  const Window window = make_window({x[1], x[2]}, {filter[1], filter[2]}, attributes);
  const int64_t per_group = filter[3];
  const int64_t outputs_per_group = filter[0] / attributes.integer("groups");
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t oh = 0; oh < y[1]; ++oh)
      for (int64_t ow = 0; ow < y[2]; ++ow)
        for (int64_t kh = 0; kh < filter[1]; ++kh)
          for (int64_t kw = 0; kw < filter[2]; ++kw) {
            const int64_t h = window.rows.position(oh, kh);
            const int64_t w = window.columns.position(ow, kw);
            if (!window.rows.inside(h) || !window.columns.inside(w)) continue;
            for (int64_t o = 0; o < y[3]; ++o)
              for (int64_t i = 0; i < per_group; ++i)
                body(((n * x[1] + h) * x[2] + w) * x[3] + o / outputs_per_group * per_group + i,
                     ((o * filter[1] + kh) * filter[2] + kw) * per_group + i,
                     ((n * y[1] + oh) * y[2] + ow) * y[3] + o);
          }
}

Cost cost(const Graph& graph, const Node& node) {
  return {conv_shape(graph, node).flops(), touched_bytes(graph, node)};
}

// Each op multiplies two of {images, filter, results} into the third. `images`, `filter` and `results` say
// where each stands: operand 0 or 1, or 2 for the op's own result.
std::vector<ShardingSignature> sharding(const Node& node, int images, int filter, int results) {
  const auto signature = [&](Placement x, Placement w, Placement y) {
    std::array<Placement, 3> at;
    at[static_cast<size_t>(images)] = x;
    at[static_cast<size_t>(filter)] = w;
    at[static_cast<size_t>(results)] = y;
    return ShardingSignature{{at[0], at[1]}, {at[2]}};
  };
  const Placement whole = Placement::replicate();
  // The one of the three that does not carry the split axis: replicated as an operand, partial as the result.
  const auto summed = [&](int place) { return place == 2 ? Placement::partial() : whole; };
  std::vector<ShardingSignature> result{signature(whole, whole, whole),
                                        signature(Placement::split(0), summed(filter), Placement::split(0))};
  if (node.attributes.integer("groups") != 1) return result;
  result.push_back(signature(summed(images), Placement::split(0), Placement::split(3)));
  result.push_back(signature(Placement::split(3), Placement::split(3), summed(results)));
  return result;
}

}  // namespace

OpDef conv2d_op() {
  OpDef def{.name = "conv2d", .summary = "slides filters over channels-last images"};
  def.attributes = conv_attributes();
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer_forward;
  def.gradient = gradient_forward;
  def.reference = [](const ReferenceContext& c) {
    for_each_product(c.in(0).shape(), c.in(1).shape(), c.out().shape(), c.attributes,
                     [&](int64_t x, int64_t w, int64_t y) { c.out()[y] += c.in(0)[x] * c.in(1)[w]; });
  };
  def.sharding = [](const Graph&, const Node& node) { return sharding(node, 0, 1, 2); };
  def.cost = cost;
  return def;
}

OpDef conv2d_grad_input_op() {
  OpDef def{.name = "conv2d_grad_input", .summary = "the gradient of conv2d for its images"};
  def.attributes = conv_attributes();
  def.attributes.push_back({"extent", std::vector<int64_t>{}, "[rows, columns] of the images", true});
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer_grad_input;
  def.gradient = gradient_grad_input;
  def.reference = [](const ReferenceContext& c) {
    for_each_product(c.out().shape(), c.in(1).shape(), c.in(0).shape(), c.attributes,
                     [&](int64_t x, int64_t w, int64_t y) { c.out()[x] += c.in(0)[y] * c.in(1)[w]; });
  };
  def.sharding = [](const Graph&, const Node& node) { return sharding(node, 2, 1, 0); };
  def.cost = cost;
  return def;
}

OpDef conv2d_grad_filter_op() {
  OpDef def{.name = "conv2d_grad_filter", .summary = "the gradient of conv2d for its filters"};
  def.attributes = conv_attributes();
  def.attributes.push_back({"kernel", std::vector<int64_t>{}, "[rows, columns] of the filters", true});
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer_grad_filter;
  def.gradient = gradient_grad_filter;
  def.reference = [](const ReferenceContext& c) {
    for_each_product(c.in(0).shape(), c.out().shape(), c.in(1).shape(), c.attributes,
                     [&](int64_t x, int64_t w, int64_t y) { c.out()[w] += c.in(0)[x] * c.in(1)[y]; });
  };
  def.sharding = [](const Graph&, const Node& node) { return sharding(node, 0, 2, 1); };
  def.cost = cost;
  return def;
}

}  // namespace lockstep
