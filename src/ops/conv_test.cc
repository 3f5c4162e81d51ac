// What convolutions and pools refuse, and how they may be split.
#include "ops/op_errors.h"

namespace lockstep {
namespace {

using testing::expect_error;

TEST(Conv2d, RefusesOperandsThatDoNotFit) {
  expect_error("x: f32[2,8,8,4], w: f32[6,3,3,5]", "y = conv2d(x, w)",
               "the images have 4 channels but the filter takes 5 x 1 groups; make the filter's last axis 4");
  expect_error("x: f32[2,8,8,4], w: f32[6,3,3,2]", "y = conv2d(x, w) {groups=4}",
               "6 output channels do not divide into 4 groups");
  expect_error("x: f32[2,8,4], w: f32[6,3,3,4]", "y = conv2d(x, w)", "operand 0 must have 4 axes");
  expect_error("x: f32[2,8,8,4], w: bf16[6,3,3,4]", "y = conv2d(x, w)", "different element types; cast one");
}

TEST(Conv2d, RefusesWindowsThatDoNotFit) {
  const std::string operands = "x: f32[2,8,4,4], w: f32[6,3,5,4]";
  expect_error(operands, "y = conv2d(x, w)", "a kernel of 5 with dilation 1 does not fit into 4 columns");
  expect_error(operands, "y = conv2d(x, w) {stride=[0,1]}", "stride has the value 0; use 1 to 1048576");
  expect_error(operands, "y = conv2d(x, w) {stride=[1]}", "stride has 1 values; write [rows, columns]");
  expect_error(operands, "y = conv2d(x, w) {padding=[1,2,3]}",
               "padding has 3 values; write [top, bottom, left, right]");
  expect_error(operands, "y = conv2d(x, w) {dilation=[1,70000000000000]}",
               "dilation has the value 70000000000000");
}

TEST(Conv2d, GradientsRefuseWhatNoConvolutionGives) {
  expect_error("dy: f32[2,8,8,6], w: f32[6,3,3,4]", "dx = conv2d_grad_input(dy, w) {extent=[8,8]}",
               "must have the shape of the convolution's result, [2,6,6,6]");
  expect_error("x: f32[2,8,8,4], dy: f32[3,6,6,6]", "dw = conv2d_grad_filter(x, dy) {kernel=[3,3]}",
               "must have the shape of the convolution's result, [2,6,6,6]");
}

TEST(Conv2d, SplitsOverBatchOutputsAndChannels) {
  const auto splits = [](const std::string& statement) {
    const Graph graph =
        parse_graph("graph t(x: f32[4,8,8,4], w: f32[6,3,3,4], dy: f32[4,6,6,6]) {\n  y = " + statement +
                        "\n  return y\n}\n",
                    all_ops(), "t");
    std::string text;
    for (const ShardingSignature& signature : graph.nodes()[0].op->sharding(graph, graph.nodes()[0]))
      text += to_string(signature) + " ";
    return text;
  };
  EXPECT_EQ(splits("conv2d(x, w)"), "R,R->R S0,R->S0 R,S0->S3 S3,S3->P ");
  EXPECT_EQ(splits("conv2d_grad_input(dy, w) {extent=[8,8]}"), "R,R->R S0,R->S0 S3,S0->P R,S3->S3 ");
  EXPECT_EQ(splits("conv2d_grad_filter(x, dy) {kernel=[3,3]}"), "R,R->R S0,S0->P R,S3->S0 S3,R->S3 ");
}

TEST(Pools, RefuseWindowsThatDoNotFit) {
  expect_error("x: f32[2,8,8,4]", "y, i = max_pool2d(x) {kernel=[2,2], padding=[2,2]}",
               "pad by less than the kernel");
  expect_error("x: f32[2,8,8,4]", "y = avg_pool2d(x) {kernel=[9,2]}", "does not fit into 8 rows");
  expect_error("x: f32[8,8,4]", "y = avg_pool2d(x) {kernel=[2,2]}", "operand 0 must have 4 axes");
  expect_error("x: i32[2,8,8,4]", "y, i = max_pool2d(x) {kernel=[2,2]}", "cast it first");
  expect_error("dy: f32[2,4,4,4]", "dx = avg_pool2d_grad(dy) {kernel=[2,2], extent=[6,8]}",
               "must have the shape of the pool's result, [2,3,4,4]");
  expect_error("dy: f32[2,4,4,4], i: i32[2,4,4,5]",
               "dx = max_pool2d_grad(dy, i) {kernel=[2,2], extent=[8,8]}", "must be i32[2,4,4,4]");
}

}  // namespace
}  // namespace lockstep
