// Updates of bf16 parameters equal, bit for bit, what they are defined as: the f32 update of the widened
// buffers, rounded with the draws of each tensor; whoever updates which part.
#include "ops/rounded_update.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/backend.h"
#include "base/dtype.h"
#include "base/philox.h"
#include "graph/text.h"
#include "ops/registry.h"
#include "ops/stochastic_rounding.h"

namespace lockstep {
namespace {

// Two tensors, the second from 3072 on.
constexpr int64_t kCount = 36'000, kSecond = 3072;
constexpr int64_t kFirstKey = 5, kSecondKey = 1234567890123;
constexpr int64_t kSeed = 42, kStep = 3;

std::vector<float> numbers(uint64_t stream, float scale, bool positive = false) {
  std::vector<float> values(kCount);
  Philox(17, stream).fill_normal(values, 0.0f, scale);
  for (float& x : values) x = positive ? std::fabs(x) : x;
  return values;
}

std::vector<uint16_t> narrow(const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float x : values) bits.push_back(to_bf16(x));
  return bits;
}

std::vector<float> wide(const std::vector<uint16_t>& bits) {
  std::vector<float> values;
  for (const uint16_t x : bits) values.push_back(from_bf16(x));
  return values;
}

std::vector<uint16_t> rounded(const std::vector<float>& values, size_t result) {
  std::vector<uint16_t> bits;
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t key = result_key(i < kSecond ? kFirstKey : kSecondKey, result);
    const int64_t element = i < kSecond ? i : i - kSecond;
    const uint32_t word = Philox(kSeed, rounding_stream(key, kStep)).bits(static_cast<uint64_t>(element));
    bits.push_back(to_bf16(round_stochastically(values[static_cast<size_t>(i)], word)));
  }
  return bits;
}

struct State {
  std::vector<uint16_t> p, m16, v16;
  std::vector<float> m, v;
  bool operator==(const State&) const = default;
};

State start(bool narrow_moments) {
  State state{narrow(numbers(1, 1.0f)), {}, {}, {}, {}};
  if (narrow_moments) {
    state.m16 = narrow(numbers(2, 0.1f));
    state.v16 = narrow(numbers(3, 0.1f, true));
  } else {
    state.m = numbers(2, 0.1f);
    state.v = numbers(3, 0.1f, true);
  }
  return state;
}

class RoundedUpdateTest : public ::testing::TestWithParam<const char*> {
 protected:
  void run(const std::string& text, const std::vector<void*>& inputs, const std::vector<void*>& outputs,
           int threads) {
    const auto backend = make_cpu_backend(threads);
    const Graph graph = parse_graph(text, all_ops());
    const KernelChoice choice = backend->choose(graph, graph.nodes()[0]);
    ASSERT_NE(choice.kernel, nullptr) << text;
    choice.kernel->run({inputs, outputs, nullptr});
  }

  // The update of elements [begin, end), in place.
  void update(State& state, int64_t begin, int64_t end, int threads) {
    const bool narrow_moments = !state.m16.empty();
    const std::string text = fmt::format(
        "graph t(p: bf16[{0}], g: bf16[{0}], m: {1}[{0}], v: {1}[{0}], rounding: i64[2], scale: f32[], "
        "lr: f32[], step: i64[]) {{\n  q, m1, v1 = {2}(p, g, m, v, rounding, scale, lr, step) "
        "{{weight_decay=0.1, no_decay={3}, draws={4}}}\n  return q\n}}",
        end - begin, narrow_moments ? "bf16" : "f32", GetParam(),
        begin < 1001 ? fmt::format("[{},{}]", 1000 - begin, 1001 - begin) : "[]", draws(begin, end));
    std::vector<uint16_t> g = narrow(numbers(4, 1.0f));
    void* const m = narrow_moments ? static_cast<void*>(state.m16.data() + begin) : state.m.data() + begin;
    void* const v = narrow_moments ? static_cast<void*>(state.v16.data() + begin) : state.v.data() + begin;
    uint16_t* const p = state.p.data() + begin;
    run(text, {p, g.data() + begin, m, v, rounding_.data(), &scale_, &lr_, &step_}, {p, m, v}, threads);
  }

  static std::string draws(int64_t begin, int64_t end) {
    std::string text = "[";
    if (begin < kSecond) text += fmt::format("0,{},{}", kFirstKey, begin);
    if (end > kSecond)
      text += fmt::format("{}{},{},{}", begin < kSecond ? "," : "", std::max<int64_t>(0, kSecond - begin),
                          kSecondKey, std::max<int64_t>(0, begin - kSecond));
    return text + "]";
  }

  State by_definition(State state) {
    const bool narrow_moments = !state.m16.empty();
    std::vector<float> p = wide(state.p), g = wide(narrow(numbers(4, 1.0f)));
    std::vector<float> m = narrow_moments ? wide(state.m16) : state.m;
    std::vector<float> v = narrow_moments ? wide(state.v16) : state.v;
    run(fmt::format("graph t(p: f32[{0}], g: f32[{0}], m: f32[{0}], v: f32[{0}], scale: f32[], lr: f32[], "
                    "step: i64[]) {{\n  q, m1, v1 = {1}(p, g, m, v, scale, lr, step) "
                    "{{weight_decay=0.1, no_decay=[1000,1001]}}\n  return q\n}}",
                    kCount, GetParam()),
        {p.data(), g.data(), m.data(), v.data(), &scale_, &lr_, &step_}, {p.data(), m.data(), v.data()}, 1);
    state.p = rounded(p, 0);
    if (narrow_moments) {
      state.m16 = rounded(m, 1);
      state.v16 = rounded(v, 2);
    } else {
      state.m = m;
      state.v = v;
    }
    return state;
  }

  std::vector<int64_t> rounding_ = {kSeed, kStep};
  float scale_ = 0.5f, lr_ = 1e-3f;
  int64_t step_ = kStep;
};

TEST_P(RoundedUpdateTest, IsTheF32UpdateRounded) {
  for (const bool narrow_moments : {false, true}) {
    const State expected = by_definition(start(narrow_moments));
    for (const int threads : {1, 3}) {
      State state = start(narrow_moments);
      update(state, 0, kCount, threads);
      EXPECT_TRUE(state == expected) << narrow_moments << ", " << threads << " threads";
    }
  }
}

TEST_P(RoundedUpdateTest, PartsGiveTheBitsOfTheWhole) {
  for (const bool narrow_moments : {false, true}) {
    State whole = start(narrow_moments), parts = start(narrow_moments);
    update(whole, 0, kCount, 2);
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 2048}, {2048, 5120}, {5120, kCount}})
      update(parts, begin, end, 2);
    EXPECT_TRUE(parts == whole) << narrow_moments;
  }
}

// Less than a thousandth of the last place a step: to nearest, nothing would ever move.
TEST_P(RoundedUpdateTest, SmallStepsCountOnAverage) {
  State state = start(false);
  std::fill(state.p.begin(), state.p.end(), to_bf16(1.0f));
  std::fill(state.m.begin(), state.m.end(), 1.0f);
  std::fill(state.v.begin(), state.v.end(), 1.0f);
  lr_ = 0x1p-17f;
  update(state, 0, kCount, 1);
  double sum = 0;
  for (const float x : wide(state.p)) sum += 1.0 - static_cast<double>(x);
  EXPECT_GT(sum, 0.0);
  EXPECT_LT(std::count(state.p.begin(), state.p.end(), to_bf16(1.0f)), kCount);
  EXPECT_GT(std::count(state.p.begin(), state.p.end(), to_bf16(1.0f)), kCount / 2);
}

INSTANTIATE_TEST_SUITE_P(Rules, RoundedUpdateTest, ::testing::Values("adam", "adamw"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep
