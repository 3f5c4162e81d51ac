// Times are a machine's; what is tested is that every product of a step is found, once, and described.
#include "backend/cpu/library_products.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep::cpu {
namespace {

std::map<std::string, LibraryProduct> products_of(const std::string& body) {
  const Graph graph = parse_graph(fmt::format("graph t({}}}\n", body), all_ops(), "t");
  std::map<std::string, LibraryProduct> by_text;
  for (const LibraryProduct& product : library_products(graph, 1)) {
    EXPECT_GT(product.milliseconds, 0) << product.op;
    EXPECT_NE(product.call, "") << product.op;
    std::string text = product.op;
    for (const auto& [name, value] : product.sizes)
      if (value != 0) text += fmt::format(" {}={}", name, value);
    by_text[text] = product;
  }
  return by_text;
}

TEST(LibraryProducts, EqualProductsAreTimedOnceAndCounted) {
  const auto products = products_of(
      "x: f32[4,8,16], w: f32[16,24], v: f32[24,16], c: f32[32,24]) {\n"
      "  a = matmul(x, w)\n"
      "  b = matmul(x, w)\n"
      "  d = matmul(x, v) {transpose_b=true}\n"
      "  s = add(a, b)\n"
      "  return s, d\n");
  ASSERT_EQ(products.size(), 2);
  EXPECT_EQ(products.at("matmul batch=1 m=32 n=24 k=16 one_b=1").count, 2);
  EXPECT_EQ(products.at("matmul batch=1 m=32 n=24 k=16 transpose_b=1 one_b=1").count, 1);
}

TEST(LibraryProducts, BatchesAndAccumulationAreTheProductsOwn) {
  const auto products = products_of(
      "x: f32[4,8,16], w: f32[4,16,24], c: f32[16,24], y: f32[8,16], z: f32[8,24]) {\n"
      "  a = matmul(x, w)\n"
      "  b = matmul(y, z, c) {transpose_a=true}\n"
      "  return a, b\n");
  ASSERT_EQ(products.size(), 2);
  EXPECT_TRUE(products.contains("matmul batch=4 m=8 n=24 k=16"));
  EXPECT_TRUE(products.contains("matmul batch=1 m=16 n=24 k=8 transpose_a=1 one_b=1 accumulate=1"));
}

TEST(LibraryProducts, ConvolutionsAndTheirGradients) {
  const auto products = products_of(
      "x: f32[2,8,8,4], w: f32[6,3,3,4]) {\n"
      "  y = conv2d(x, w) {padding=[1,1]}\n"
      "  dx = conv2d_grad_input(y, w) {padding=[1,1], extent=[8,8]}\n"
      "  dw = conv2d_grad_filter(x, y) {padding=[1,1], kernel=[3,3]}\n"
      "  return y, dx, dw\n");
  const std::string sizes =
      "batch=2 channels=4 outputs=6 groups=1 rows=8 columns=8 kernel_rows=3 kernel_columns=3 stride_rows=1 "
      "stride_columns=1 pad_rows=1 pad_columns=1 dilation_rows=1 dilation_columns=1";
  ASSERT_EQ(products.size(), 3);
  for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_filter"})
    EXPECT_TRUE(products.contains(fmt::format("{} {}", op, sizes))) << op;
}

}  // namespace
}  // namespace lockstep::cpu
