// Updating only the rows that a step touches, with the rest caught up when needed, gives the bits of dense
// AdamW over the whole table at every step.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/backend.h"
#include "base/error.h"
#include "base/philox.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

constexpr int64_t kRows = 50, kColumns = 37, kIds = 12, kHistory = 8;
constexpr size_t kElements = kRows * kColumns;

// The only node of a graph, run on buffers given by hand.
class OneNode {
 public:
  OneNode(Backend& backend, const std::string& text) : graph_(parse_graph(text, all_ops())) {
    choice_ = backend.choose(graph_, graph_.nodes()[0]);
    workspace_ = backend.allocate(std::max<int64_t>(1, choice_.kernel->workspace_bytes()));
  }
  void run(std::vector<void*> inputs, std::vector<void*> outputs) {
    choice_.kernel->run({inputs, outputs, workspace_->data()});
  }

 private:
  Graph graph_;
  KernelChoice choice_;
  std::unique_ptr<Buffer> workspace_;
};

struct Table {
  std::vector<float> p, m = std::vector<float>(kElements), v = std::vector<float>(kElements);
  bool same_as(const Table& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(p, other.p) && same(m, other.m) && same(v, other.v);
  }
};

class AdamwRowsTest : public ::testing::TestWithParam<int> {
 protected:
  AdamwRowsTest() {
    lazy_.p.resize(kElements);
    Philox(5, 0).fill_normal(lazy_.p, 0.0f, 0.02f);
    dense_ = lazy_;
  }

  void dense_step() {
    std::vector<float> g(kElements, 0.0f);
    for (size_t i = 0; i < kIds; ++i)
      for (size_t k = 0; k < kColumns; ++k)
        g[static_cast<size_t>(ids_[i]) * kColumns + k] += dy_[i * kColumns + k];
    adamw_.run({dense_.p.data(), g.data(), dense_.m.data(), dense_.v.data(), &scale_, &lr_, &step_},
               {dense_.p.data(), dense_.m.data(), dense_.v.data()});
  }
  void catch_up(OneNode& node, std::vector<int32_t> ids) {
    node.run(
        {lazy_.p.data(), lazy_.m.data(), lazy_.v.data(), last_.data(), ids.data(), history_.data(), &step_},
        {lazy_.p.data(), lazy_.m.data(), lazy_.v.data(), last_.data()});
  }
  void lazy_step() {
    catch_up(some_, ids_);
    std::vector<int32_t> row_ids(kIds);
    std::vector<float> row_grads(kIds * kColumns);
    row_gradient_.run({dy_.data(), ids_.data()}, {row_ids.data(), row_grads.data()});
    rows_.run({lazy_.p.data(), lazy_.m.data(), lazy_.v.data(), last_.data(), row_ids.data(), row_grads.data(),
               &scale_, &lr_, &step_},
              {lazy_.p.data(), lazy_.m.data(), lazy_.v.data(), last_.data()});
    history_[static_cast<size_t>(step_ % kHistory)] = lr_;
  }
  // Frequent low ids, rare high ones.
  void draw(int64_t step) {
    const Philox random(6, static_cast<uint64_t>(step));
    for (size_t i = 0; i < kIds; ++i) {
      const float x = random.uniform(i);
      ids_[i] = static_cast<int32_t>(x * x * x * kRows);
    }
    Philox(7, static_cast<uint64_t>(step)).fill_normal(dy_, 0.0f, 1.0f);
    step_ = step;
    lr_ = 0.01f / static_cast<float>(step);
    scale_ = 0.5f + random.uniform(100);
  }

  static constexpr const char* kState = "p: f32[50,37], m: f32[50,37], v: f32[50,37], last: i32[50]";
  static OneNode catch_up_node(Backend& backend, int64_t ids) {
    return {backend,
            fmt::format("graph t({}, ids: i32[{}], lr: f32[{}], step: i64[]) {{\n"
                        "  q, m1, v1, l = adamw_catch_up(p, m, v, last, ids, lr, step)\n  return q\n}}",
                        kState, ids, kHistory)};
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend(GetParam());
  OneNode adamw_{
      *backend_,
      fmt::format("graph t(p: f32[{0}], g: f32[{0}], m: f32[{0}], v: f32[{0}], scale: f32[], lr: f32[], "
                  "step: i64[]) {{\n  q, m1, v1 = adamw(p, g, m, v, scale, lr, step)\n  return q\n}}",
                  kElements)};
  OneNode row_gradient_{*backend_,
                        "graph t(dy: f32[12,37], ids: i32[12]) {\n  r, g = row_gradient(dy, ids) {rows=50}\n"
                        "  return r\n}"};
  OneNode rows_{
      *backend_,
      fmt::format("graph t({}, ids: i32[12], g: f32[12,37], scale: f32[], lr: f32[], step: i64[]) {{\n"
                  "  q, m1, v1, l = adamw_rows(p, m, v, last, ids, g, scale, lr, step)\n  return q\n}}",
                  kState)};
  OneNode some_ = catch_up_node(*backend_, kIds);
  OneNode all_ = catch_up_node(*backend_, 0);
  Table dense_, lazy_;
  std::vector<int32_t> last_ = std::vector<int32_t>(kRows);
  std::vector<float> history_ = std::vector<float>(kHistory);
  std::vector<int32_t> ids_ = std::vector<int32_t>(kIds);
  std::vector<float> dy_ = std::vector<float>(kIds * kColumns);
  float scale_ = 1.0f, lr_ = 0.0f;
  int64_t step_ = 0;
};

TEST_P(AdamwRowsTest, ThirtyStepsEqualDenseOnesBitForBit) {
  for (int64_t step = 1; step <= 30; ++step) {
    draw(step);
    dense_step();
    if (step % kHistory == 0) catch_up(all_, {});
    lazy_step();
  }
  EXPECT_FALSE(lazy_.same_as(dense_)) << "every row was touched in the last step: the test tests nothing";
  step_ = 31;
  catch_up(all_, {});
  EXPECT_TRUE(lazy_.same_as(dense_));
}

TEST_P(AdamwRowsTest, AForgottenRowIsAnErrorThatSaysWhatToDo) {
  step_ = kHistory + 2;
  try {
    catch_up(all_, {});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("catch all rows up at least every 8 steps"), std::string::npos)
        << error.what();
  }
}

TEST_P(AdamwRowsTest, ARowThatIsBehindIsNotUpdated) {
  draw(3);
  std::vector<int32_t> row_ids(kIds, -1);
  row_ids[0] = 7;
  EXPECT_THROW(rows_.run({lazy_.p.data(), lazy_.m.data(), lazy_.v.data(), last_.data(), row_ids.data(),
                          dy_.data(), &scale_, &lr_, &step_},
                         {lazy_.p.data(), lazy_.m.data(), lazy_.v.data(), last_.data()}),
               InternalError);
}

INSTANTIATE_TEST_SUITE_P(Threads, AdamwRowsTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace lockstep
