// Graphs before and after they are split over the ranks of an axis, as text.
#include "passes/shard.h"

#include "base/error.h"
#include "passes/autodiff.h"
#include "passes/rewrite_case.h"

namespace lockstep::testing {
namespace {

ShardAxis tensor(std::map<std::string, Placement> placements, int64_t size = 2, int64_t index = 0) {
  return {"tensor", size, index, std::move(placements)};
}

void expect_shard(const ShardAxis& axis, std::string_view before, std::string_view after) {
  const Graph result = shard(graph_of(before), axis);
  verify(result, Stage::kDifferentiated);
  EXPECT_EQ(to_text(result), to_text(graph_of(after)));
}

const std::map<std::string, Placement> kColumnsThenRows = {{"w", Placement::split(1)},
                                                           {"v", Placement::split(0)}};

TEST(Shard, ColumnsThenRowsNeedOneSum) {
  expect_shard(tensor(kColumnsThenRows), R"(graph f(x: f32[4,8], w: f32[8,16] @param, v: f32[16,2] @param) {
      h = matmul(x, w)
      a = gelu(h)
      y = matmul(a, v)
      loss = sum(y)
      return loss
    })",
               R"(graph f(x: f32[4,8], w: f32[8,8] @param, v: f32[8,2] @param) {
      h = matmul(x, w)
      a = gelu(h)
      y = matmul(a, v)
      loss = sum(y)
      loss_all_reduce = all_reduce(loss) {group="tensor", size=2}
      return loss_all_reduce
    })");
}

TEST(Shard, ASumIsTakenBeforeWhatNeedsAllOfIt) {
  expect_shard(tensor(kColumnsThenRows), R"(graph f(x: f32[4,8], w: f32[8,16] @param, v: f32[16,8] @param) {
      h = matmul(x, w)
      y = matmul(h, v)
      z = add(x, y)
      return z
    })",
               R"(graph f(x: f32[4,8], w: f32[8,8] @param, v: f32[8,8] @param) {
      h = matmul(x, w)
      y = matmul(h, v)
      y_all_reduce = all_reduce(y) {group="tensor", size=2}
      z = add(x, y_all_reduce)
      return z
    })");
}

TEST(Shard, GradientsLieAsTheirParameters) {
  expect_shard(tensor(kColumnsThenRows), R"(graph f(x: f32[4,8], w: f32[8,16] @param, v: f32[16,8] @param,
        dz: f32[4,8], grad.w: f32[8,16] @grad, grad.v: f32[16,8] @grad, dx: f32[4,8] @state) {
      h = matmul(x, w)
      dv = matmul(h, dz) {transpose_a=true}
      dh = matmul(dz, v) {transpose_b=true}
      dw = matmul(x, dh) {transpose_a=true}
      back = matmul(dh, w) {transpose_b=true}
      return grad.w <- dw, grad.v <- dv, dx <- back
    })",
               R"(graph f(x: f32[4,8], w: f32[8,8] @param, v: f32[8,8] @param,
        dz: f32[4,8], grad.w: f32[8,8] @grad, grad.v: f32[8,8] @grad, dx: f32[4,8] @state) {
      h = matmul(x, w)
      dv = matmul(h, dz) {transpose_a=true}
      dh = matmul(dz, v) {transpose_b=true}
      dw = matmul(x, dh) {transpose_a=true}
      back = matmul(dh, w) {transpose_b=true}
      back_all_reduce = all_reduce(back) {group="tensor", size=2}
      return grad.w <- dw, grad.v <- dv, dx <- back_all_reduce
    })");
}

TEST(Shard, PartsOfABatchGivePartsOfTheGradient) {
  const Graph differentiated = differentiate(graph_of(R"(graph f(x: f32[4,8], w: f32[8,2] @param) {
      y = matmul(x, w)
      loss = sum(y)
      return loss
    })"));
  expect_shard({"data", 2, 0, {{"x", Placement::split(0)}}}, to_text(differentiated),
               R"(graph f(x: f32[2,8], w: f32[8,2] @param, grad.w: f32[8,2] @grad) {
      y = matmul(x, w)
      loss = sum(y)
      constant = constant() {value=1.0}
      reshape = reshape(constant) {shape=[1,1]}
      broadcast = broadcast(reshape) {shape=[4,2]}
      broadcast_part = broadcast(reshape) {shape=[2,2]}
      matmul = matmul(x, broadcast_part) {transpose_a=true}
      loss_all_reduce = all_reduce(loss) {group="data", size=2}
      matmul_all_reduce = all_reduce(matmul) {group="data", size=2}
      return loss_all_reduce, grad.w <- matmul_all_reduce
    })");
}

TEST(Shard, HeadsAreColumns) {
  expect_shard(tensor({{"w", Placement::split(1)}}), R"(graph f(x: f32[2,3,8], w: f32[8,8] @param) {
      c = matmul(x, w)
      h = reshape(c) {shape=[2,3,4,2]}
      t = transpose(h) {permutation=[0,2,1,3]}
      return t
    })",
               R"(graph f(x: f32[2,3,8], w: f32[8,4] @param) {
      c = matmul(x, w)
      h = reshape(c) {shape=[2,3,2,2]}
      t = transpose(h) {permutation=[0,2,1,3]}
      t_all_gather = all_gather(t) {group="tensor", size=2, axis=1}
      return t_all_gather
    })");
}

// The loss needs whole rows of what is split by columns; its gradient uses the same rows again.
TEST(Shard, RowsAreExchangedForColumns) {
  expect_shard(tensor({{"w", Placement::split(1)}}),
               R"(graph f(x: f32[4,8], w: f32[8,6] @param, labels: i32[4], dloss: f32[]) {
      logits = matmul(x, w)
      loss, count, lse = cross_entropy(logits, labels)
      dlogits = cross_entropy_grad(dloss, logits, labels, lse)
      return loss, dlogits
    })",
               R"(graph f(x: f32[4,8], w: f32[8,3] @param, labels: i32[4], dloss: f32[]) {
      logits = matmul(x, w)
      logits_all_to_all = all_to_all(logits) {group="tensor", size=2, split_axis=0, concat_axis=1}
      labels_part = slice(labels) {axis=0, begin=0, end=2}
      loss, count, lse = cross_entropy(logits_all_to_all, labels_part)
      dlogits = cross_entropy_grad(dloss, logits_all_to_all, labels_part, lse)
      loss_all_reduce = all_reduce(loss) {group="tensor", size=2}
      dlogits_all_gather = all_gather(dlogits) {group="tensor", size=2}
      return loss_all_reduce, dlogits_all_gather
    })");
}

TEST(Shard, RanksDifferInWhereTheyCut) {
  constexpr std::string_view kText = R"(graph f(x: f32[6,4], y: f32[6,4]) {
      z = mul(x, y)
      return z
    })";
  expect_shard(tensor({{"y", Placement::split(0)}}, 3, 2), kText, R"(graph f(x: f32[6,4], y: f32[2,4]) {
      x_part = slice(x) {axis=0, begin=4, end=6}
      z = mul(x_part, y)
      z_all_gather = all_gather(z) {group="tensor", size=3}
      return z_all_gather
    })");
}

TEST(Shard, SumsOfSumsAreTakenOnce) {
  expect_shard(tensor({{"x", Placement::split(1)}, {"w", Placement::split(0)}, {"v", Placement::split(0)}}),
               R"(graph f(x: f32[4,8], w: f32[8,2] @param, v: f32[8,2] @param) {
      a = matmul(x, w)
      b = matmul(x, v)
      c = add(a, b)
      return c
    })",
               R"(graph f(x: f32[4,4], w: f32[4,2] @param, v: f32[4,2] @param) {
      a = matmul(x, w)
      b = matmul(x, v)
      c = add(a, b)
      c_all_reduce = all_reduce(c) {group="tensor", size=2}
      return c_all_reduce
    })");
}

TEST(Shard, AnUpdateOfASplitTargetIsScattered) {
  expect_shard({"data", 2, 0, {{"x", Placement::split(0)}, {"total", Placement::split(0)}}},
               R"(graph f(x: f32[4,8], w: f32[4,2], total: f32[8,2] @state) {
      dw = matmul(x, w) {transpose_a=true}
      return total <- dw
    })",
               R"(graph f(x: f32[2,8], w: f32[4,2], total: f32[4,2] @state) {
      w_part = slice(w) {axis=0, begin=0, end=2}
      dw = matmul(x, w_part) {transpose_a=true}
      dw_reduce_scatter = reduce_scatter(dw) {group="data", size=2}
      return total <- dw_reduce_scatter
    })");
}

// Collectives over the tensor axis stay what they are when the batch is split too.
TEST(Shard, OneAxisAfterAnother) {
  PassOptions options;
  options.shard = {tensor(kColumnsThenRows), {"data", 2, 0, {{"x", Placement::split(0)}}}};
  const Graph result = run_shard(graph_of(R"(graph f(x: f32[4,8], w: f32[8,16] @param, v: f32[16,8] @param) {
      h = matmul(x, w)
      y = matmul(h, v)
      z = tanh(y)
      loss = sum(z)
      return loss
    })"),
                                 options);
  EXPECT_EQ(to_text(result),
            to_text(graph_of(R"(graph f(x: f32[2,8], w: f32[8,8] @param, v: f32[8,8] @param) {
      h = matmul(x, w)
      y = matmul(h, v)
      y_all_reduce = all_reduce(y) {group="tensor", size=2}
      z = tanh(y_all_reduce)
      loss = sum(z)
      loss_all_reduce = all_reduce(loss) {group="data", size=2}
      return loss_all_reduce
    })")));
}

TEST(Shard, SaysWhatItChose) {
  PassOptions options;
  std::vector<std::string> lines;
  options.explain = [&](std::string_view topic, const std::string& line) {
    if (topic == "sharding") lines.push_back(line);
  };
  shard(graph_of(R"(graph f(x: f32[4,8], w: f32[8,16] @param, v: f32[16,8] @param) {
      h = matmul(x, w)
      y = matmul(h, v)
      z = tanh(y)
      return z
    })"),
        tensor(kColumnsThenRows), options);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "tensor: h = matmul(x, w) R,S1->S1", "tensor: y = matmul(h, v) S1,S0->P",
                       "tensor: z = tanh(y) R->R, 128 bytes sent", "tensor: all_reduce of y"}));
}

std::string error_of(const ShardAxis& axis) {
  try {
    shard(graph_of("graph f(x: f32[4,6]) {\n y = tanh(x)\n return y\n}"), axis);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Shard, RefusesWhatCannotBeShared) {
  EXPECT_EQ(error_of(tensor({{"w", Placement::split(0)}})), "shard: graph f has no input w");
  EXPECT_EQ(error_of(tensor({{"y", Placement::split(0)}})), "shard: graph f has no input y");
  EXPECT_EQ(error_of(tensor({{"x", Placement::split(1)}}, 4)),
            "shard: x of shape [4,6] cannot be split along axis 1 over 4 ranks");
  EXPECT_EQ(error_of(tensor({{"x", Placement::split(2)}})),
            "shard: x of shape [4,6] cannot be split along axis 2 over 2 ranks");
}

}  // namespace
}  // namespace lockstep::testing
