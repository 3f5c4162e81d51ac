#include "graph/text.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "graph/toy_ops.h"
#include "graph/verifier.h"

namespace lockstep::testing {
namespace {

std::string round_trip(std::string_view text) { return to_text(parse_graph(text, toy_ops())); }

TEST(Graph, ACopyHasNamesOfItsOwn) {
  auto first =
      std::make_unique<Graph>(parse_graph("graph g(x: f32[2]) { a, b = twice(x)  return b }", toy_ops()));
  Graph copy = *first;
  copy.rename(copy.find("a"), "of_the_copy_alone_and_too_long_to_be_held_in_place");
  EXPECT_TRUE(first->find("a").valid());
  const std::string text = to_text(copy);
  first.reset();
  Graph moved = std::move(copy);
  EXPECT_EQ(to_text(moved), text);
  EXPECT_FALSE(moved.find("a").valid());
  EXPECT_TRUE(moved.find("of_the_copy_alone_and_too_long_to_be_held_in_place").valid());
  EXPECT_EQ(moved.name(moved.emit("join", {moved.find("b")}, {}, "b")), "b_1");
}

TEST(GraphText, PrintsAsWritten) {
  const char* text =
      "graph g(x: f32[2,3] @param, y: bf16[] @grad, z: i64[0,5] @state, s: f32[2,3] @statistic) {\n"
      "  a, b = twice(x)\n"
      "  c = join(a, b, x)\n"
      "  d = tuned(c) {flag=true, count=-3, rate=0.5, label=\"a \\\"b\\\" \\\\ \\n\", dtype=bf16, "
      "axes=[1,-2], weights=[1.0,inf]}\n"
      "  return c, x <- d, s <- x\n"
      "}\n";
  EXPECT_EQ(round_trip(text), text);
}

TEST(GraphText, BlanksAndCommentsDoNotMatter) {
  EXPECT_EQ(round_trip("graph g (x:f32[2]){ # a comment\n a,b=twice( x )\treturn b }"),
            "graph g(x: f32[2]) {\n  a, b = twice(x)\n  return b\n}\n");
}

TEST(GraphText, ANameMayEqualAnOpOrAProvisionalName) {
  EXPECT_EQ(round_trip("graph g(join: f32[2]) { twice.1, twice = twice(join)  tuned = join(twice, twice.1)  "
                       "return tuned }"),
            "graph g(join: f32[2]) {\n  twice.1, twice = twice(join)\n  tuned = join(twice, twice.1)\n  "
            "return tuned\n}\n");
}

// A number at its default is left out, unless it differs from it in any way.
TEST(GraphText, KeepsEveryNumberExactly) {
  for (const double rate : {-0.0, 0.1, 1e300, 5e-324, -1.0, std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(), 123456789012345680.0}) {
    Graph graph(toy_ops(), "g");
    const Value x = graph.add_input("x", {DType::kF32, {2}});
    graph.add_output(graph.emit("tuned", {x}, {{"rate", rate}}));
    const Graph parsed = parse_graph(to_text(graph), toy_ops());
    const double back = parsed.nodes()[0].attributes.number("rate");
    EXPECT_EQ(back, rate);
    EXPECT_EQ(std::signbit(back), std::signbit(rate)) << rate;
  }
}

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed), graph_(toy_ops(), "random") {}

  Graph make() {
    const int inputs = below(4) + 1;
    for (int i = 0; i < inputs; ++i)
      values_.push_back(graph_.add_input(fresh_name(), any_type(), static_cast<Role>(below(4))));
    const int nodes = below(30);
    for (int i = 0; i < nodes; ++i) add_node();
    const int outputs = below(4);
    for (int i = 0; i < outputs; ++i) graph_.add_output(any_value());
    return std::move(graph_);
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }
  Value any_value() { return values_[static_cast<size_t>(below(static_cast<int>(values_.size())))]; }
  std::string fresh_name() { return fmt::format("{}{}", below(2) == 0 ? "v." : "_", next_name_++); }

  std::vector<int64_t> any_extents() {
    std::vector<int64_t> extents(static_cast<size_t>(below(5)));
    for (int64_t& extent : extents) extent = below(6);
    return extents;
  }
  Type any_type() { return {static_cast<DType>(below(7)), Shape(any_extents())}; }

  double any_number() {
    const auto bits = random_();
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    return std::isnan(number) ? 0.25 : number;
  }
  std::string any_text() {
    std::string text;
    for (int i = below(8); i > 0; --i) text += "ab \"\\\n#{}=,"[below(11)];
    return text;
  }

  Attributes any_attributes() {
    Attributes attributes;
    if (below(2) == 0) attributes.set("flag", below(2) == 0);
    if (below(2) == 0) attributes.set("count", static_cast<int64_t>(random_()) >> 18);
    if (below(2) == 0) attributes.set("rate", any_number());
    if (below(2) == 0) attributes.set("label", any_text());
    if (below(2) == 0) attributes.set("dtype", static_cast<DType>(below(7)));
    if (below(2) == 0) attributes.set("axes", any_extents());
    if (below(2) == 0) {
      std::vector<double> weights(static_cast<size_t>(below(4)));
      for (double& weight : weights) weight = any_number();
      attributes.set("weights", weights);
    }
    return attributes;
  }

  void add_node() {
    std::vector<Value> results;
    const Value x = any_value();
    switch (below(4)) {
      case 0: results = graph_.emit_all("twice", std::array{x}, {}, fresh_name()); break;
      case 1:
        results = graph_.emit_all("join", std::vector<Value>(static_cast<size_t>(below(4)) + 1, x));
        break;
      case 2: results = graph_.emit_all("tuned", std::array{x}, any_attributes(), fresh_name()); break;
      default:
        results = graph_.emit_all("filled", std::span<const Value>(), {{"shape", any_extents()}});
        break;
    }
    values_.insert(values_.end(), results.begin(), results.end());
  }

  std::mt19937_64 random_;
  Graph graph_;
  std::vector<Value> values_;
  int next_name_ = 0;
};

TEST(GraphText, RandomGraphsComeBackTheSame) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Graph graph = RandomGraph(seed).make();
    const std::string text = to_text(graph);
    const Graph parsed = parse_graph(text, toy_ops());
    verify(parsed, Stage::kImported);
    ASSERT_EQ(to_text(parsed), text) << "seed " << seed;
    ASSERT_EQ(parsed.nodes().size(), graph.nodes().size());
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      ASSERT_EQ(parsed.nodes()[n].attributes, graph.nodes()[n].attributes) << "seed " << seed;
      ASSERT_EQ(parsed.nodes()[n].op, graph.nodes()[n].op);
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
