// Splitting, pairing and differentiating collectives, as text.
#include "passes/split_collectives.h"

#include "base/error.h"
#include "passes/autodiff.h"
#include "passes/rewrite_case.h"
#include "passes/schedule.h"

namespace lockstep::testing {
namespace {

void expect_text(const Graph& graph, std::string_view want) {
  EXPECT_EQ(to_text(graph), to_text(graph_of(want)));
}

TEST(SplitCollectives, StartThenDone) {
  const Graph split = split_collectives(graph_of(R"(graph f(x: f32[8]) {
      y = all_reduce(x) {group="data", size=4}
      z = neg(y)
      return z
    })"));
  verify(split, Stage::kScheduled);
  expect_text(split, R"(graph f(x: f32[8]) {
      y_start = all_reduce_start(x) {group="data", size=4}
      y = all_reduce_done(y_start, x)
      z = neg(y)
      return z
    })");
}

TEST(SplitCollectives, SendAndReceive) {
  const Graph split = split_collectives(graph_of(R"(graph f(x: f32[8]) {
      y = recv() {group="pipe", size=2, peer=0, shape=[8]}
      z = add(x, y)
      t = send(z) {group="pipe", size=2, peer=1}
      return z
    })"));
  verify(split, Stage::kScheduled);
  expect_text(split, R"(graph f(x: f32[8]) {
      y_start = recv_start() {group="pipe", size=2, peer=0, shape=[8]}
      y = recv_done(y_start)
      z = add(x, y)
      t_start = send_start(z) {group="pipe", size=2, peer=1}
      t = send_done(t_start, z)
      return z
    })");
}

TEST(SplitCollectives, ScheduleHidesTheTransferBehindOtherWork) {
  const Graph scheduled = schedule(split_collectives(graph_of(R"(graph f(x: f32[8], u: f32[8]) {
      a = neg(x)
      y = all_reduce(a) {group="data", size=4}
      b = tanh(u)
      z = exp(y)
      c = mul(b, z)
      return c
    })")),
                                   {});
  verify(scheduled, Stage::kScheduled);
  expect_text(scheduled, R"(graph f(x: f32[8], u: f32[8]) {
      a = neg(x)
      y_start = all_reduce_start(a) {group="data", size=4}
      b = tanh(u)
      y = all_reduce_done(y_start, a)
      z = exp(y)
      c = mul(b, z)
      return c
    })");
}

TEST(SplitCollectives, ScheduleEndsTransfersOfAGroupInTheirOrder) {
  const Graph scheduled = schedule(split_collectives(graph_of(R"(graph f(x: f32[8], u: f32[8]) {
      a = all_reduce(x) {group="data", size=4}
      b = all_reduce(u) {group="data", size=4}
      c = exp(b)
      d = mul(c, a)
      return d
    })")),
                                   {});
  verify(scheduled, Stage::kScheduled);
  expect_text(scheduled, R"(graph f(x: f32[8], u: f32[8]) {
      a_start = all_reduce_start(x) {group="data", size=4}
      b_start = all_reduce_start(u) {group="data", size=4}
      a = all_reduce_done(a_start, x)
      b = all_reduce_done(b_start, u)
      c = exp(b)
      d = mul(c, a)
      return d
    })");
}

std::string verify_error(std::string_view body) {
  try {
    verify(graph_of(fmt::format("graph f(x: f32[8], u: f32[8]) {{\n{}\n}}", body)), Stage::kScheduled);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_BROKEN(body, part) \
  EXPECT_NE(verify_error(body).find(part), std::string::npos) << verify_error(body)

TEST(SplitCollectives, TheVerifierWantsPairs) {
  EXPECT_BROKEN("s = all_reduce_start(x) {group=\"g\", size=2}\n return x",
                "0 readers instead of one all_reduce_done");
  EXPECT_BROKEN("s = all_reduce_start(x) {group=\"g\", size=2}\n y = neg(s)\n return y",
                "only all_reduce_done may read s");
  EXPECT_BROKEN("s = all_reduce_start(x) {group=\"g\", size=2}\n y = all_gather_done(s, x)\n return y",
                "only all_reduce_done may read s");
  EXPECT_BROKEN("s = all_reduce_start(x) {group=\"g\", size=2}\n y = all_reduce_done(s, u)\n return y",
                "a done reads what its start read");
  EXPECT_BROKEN("s = all_reduce_start(x) {group=\"g\", size=2}\n y = all_reduce_done(s, x)\n return s",
                "is an output before its transfer is done");
  EXPECT_BROKEN("y = all_reduce_done(x, u)\n return y", "x was not started");
}

TEST(SplitCollectives, TheVerifierWantsOneOrderPerGroup) {
  constexpr std::string_view kCrossed = R"(a = all_reduce_start(x) {{group="g", size=2}}
      b = all_reduce_start(u) {{group="{}", size=2}}
      y = all_reduce_done(b, u)
      z = all_reduce_done(a, x)
      return y, z)";
  EXPECT_BROKEN(fmt::format(kCrossed, "g"), "b is waited for before a, which began earlier");
  EXPECT_EQ(verify_error(fmt::format(kCrossed, "other")), "no error");
}

// The gradient of sum(collective(w)) with respect to w.
void expect_gradient(const std::string& collective, const std::string& result_shape,
                     const std::string& gradient) {
  const Graph forward = graph_of("graph f(w: f32[4,6] @param) {\n y = " + collective +
                                 "\n loss = sum(y) {axes=[0,1]}\n return loss\n}");
  const Graph backward = differentiate(forward);
  EXPECT_NE(to_text(backward).find(gradient), std::string::npos) << to_text(backward);
  EXPECT_NE(to_text(backward).find("shape=" + result_shape), std::string::npos) << to_text(backward);
}

TEST(CollectiveGradients, AreCollectives) {
  expect_gradient("all_reduce(w) {group=\"g\", size=2}", "[4,6]",
                  "= all_reduce(broadcast) {group=\"g\", size=2}");
  expect_gradient("all_gather(w) {group=\"g\", size=2, axis=1}", "[4,12]",
                  "= reduce_scatter(broadcast) {group=\"g\", size=2, axis=1}");
  expect_gradient("reduce_scatter(w) {group=\"g\", size=2, axis=1}", "[4,3]",
                  "= all_gather(broadcast) {group=\"g\", size=2, axis=1}");
  expect_gradient("all_to_all(w) {group=\"g\", size=2, split_axis=0, concat_axis=1}", "[2,12]",
                  "= all_to_all(broadcast) {group=\"g\", size=2, split_axis=1}");
  expect_gradient("broadcast_from(w) {group=\"g\", size=2, root=1}", "[4,6]",
                  "= reduce_to(broadcast) {group=\"g\", size=2, root=1}");
  expect_gradient("reduce_to(w) {group=\"g\", size=2, root=1}", "[4,6]",
                  "= broadcast_from(broadcast) {group=\"g\", size=2, root=1}");
}

TEST(CollectiveGradients, SendGetsItsGradientBackFromThePeer) {
  const std::string text = to_text(differentiate(graph_of(R"(graph f(w: f32[4,6] @param) {
      token = send(w) {group="pipe", size=2, peer=1}
      loss = sum(token) {axes=[0]}
      return loss
    })")));
  EXPECT_NE(text.find("= recv(broadcast) {group=\"pipe\", size=2, peer=1, shape=[4,6]}"), std::string::npos)
      << text;
}

TEST(CollectiveGradients, RecvSendsItsGradientToThePeer) {
  const std::string text = to_text(differentiate(graph_of(R"(graph f(w: f32[0] @param) {
      y = recv(w) {group="pipe", size=2, peer=0, shape=[4]}
      loss = sum(y) {axes=[0]}
      return loss
    })")));
  EXPECT_NE(text.find("= send(broadcast) {group=\"pipe\", size=2, peer=0}"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::testing
