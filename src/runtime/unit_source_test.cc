// Parameters of a unit are waited for where they are used, in the order in which they are.
#include "runtime/unit_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "graph/text.h"
#include "ops/registry.h"
#include "runtime/executable.h"

namespace lockstep {
namespace {

// Parameters a and b of a unit, 1 to 4 and 5 to 8. Values are there once they have been waited for.
class LateUnit : public UnitSource {
 public:
  void start(int64_t unit, void* into, bool from_the_end) override {
    into_ = static_cast<float*>(into);
    std::fill_n(into_, 8, std::numeric_limits<float>::quiet_NaN());
    calls_.push_back(fmt::format("start {}{}", unit, from_the_end ? " from the end" : ""));
  }
  void wait(int64_t unit, int64_t begin, int64_t end) override {
    for (int64_t i = begin / 4; i < end / 4; ++i) into_[i] = static_cast<float>(i + 1);
    calls_.push_back(fmt::format("wait {} {}-{}", unit, begin, end));
  }
  std::vector<std::string> calls() { return std::move(calls_); }

 private:
  float* into_ = nullptr;
  std::vector<std::string> calls_;
};

std::string graph_using(const char* first, const char* second) {
  constexpr const char* kParts[] = {R"(a = unit_part(unit0) {param="a", offset=0, shape=[4], dtype=f32})",
                                    R"(b = unit_part(unit0) {param="b", offset=4, shape=[4], dtype=f32})"};
  return fmt::format(R"(graph t(x: f32[4]) {{
  started = gather_unit_start() {{unit=0, numel=8, dtype=f32, group="data"}}
  unit0 = gather_unit_done(started) {{unit=0}}
  {}
  y = mul(x, {})
  {}
  z = sub(y, {})
  return z
}}
)",
                     kParts[*first - 'a'], first, kParts[*second - 'a'], second);
}

class Units : public ::testing::Test {
 protected:
  // What x = 10 gives.
  std::vector<float> run(const std::string& text) {
    const auto backend = make_cpu_backend(1);
    Executable executable(make_plan(parse_graph(text, all_ops()), *backend), *backend);
    std::vector<float> x(4, 10.0f);
    executable.bind("x", x.data());
    executable.gather_with(unit_);
    executable.run();
    const auto* z = static_cast<const float*>(executable.output(0));
    return {z, z + 4};
  }

  LateUnit unit_;
};

TEST_F(Units, AreWaitedForPartByPart) {
  EXPECT_EQ(run(graph_using("a", "b")), (std::vector<float>{5, 14, 23, 32}));
  EXPECT_EQ(unit_.calls(), (std::vector<std::string>{"start 0", "wait 0 0-16", "wait 0 0-32"}))
      << "the last part waits for all";
}

TEST_F(Units, AreBroughtFromTheEndWhereThatIsUsedFirst) {
  EXPECT_EQ(run(graph_using("b", "a")), (std::vector<float>{49, 58, 67, 76}));
  EXPECT_EQ(unit_.calls(), (std::vector<std::string>{"start 0 from the end", "wait 0 16-32", "wait 0 0-32"}));
}

}  // namespace
}  // namespace lockstep
