// Followers wait for a leader that works, however long, and give up on one that hangs.
#include "run/workers.h"

#include <atomic>
#include <thread>

#include "comm/ranks_testing.h"

namespace lockstep {
namespace {

constexpr int kDeadline = 500;  // milliseconds

void work_for_three_deadlines(const std::function<void()>& after_each_bit) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(3 * kDeadline);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    after_each_bit();
  }
}

TEST(Workers, WaitForALeaderThatWorks) {
  const auto errors = testing::run_threads(
      LeafSplit::one_each(3),
      [](Group& group) {
        Workers workers(&group);
        if (workers.leads()) work_for_three_deadlines([&] { workers.still_working("the evaluation"); });
        EXPECT_EQ(workers.agree(workers.leads() ? 42 : 7, "the answer"), 42);
        EXPECT_EQ(workers.agree(workers.leads() ? 43 : 7, "the next answer"), 43);
      },
      testing::test_options(kDeadline));
  testing::expect_no_errors(errors);
}

TEST(Workers, GiveUpOnALeaderThatHangs) {
  std::atomic<bool> given_up = false;
  const auto errors = testing::run_threads(
      LeafSplit::one_each(2),
      [&](Group& group) {
        const Workers workers(&group);
        if (workers.leads()) return given_up.wait(false);
        try {
          workers.agree(0, "the answer");
        } catch (const PeerError&) {
          given_up = true;
          given_up.notify_all();
          throw;
        }
      },
      testing::test_options(kDeadline));
  const std::string text = testing::peer_error(0, [&] { std::rethrow_exception(errors.at(1)); });
  EXPECT_NE(text.find("rank 1 waited "), std::string::npos) << text;
  EXPECT_NE(text.find("(the answer, 16 B)"), std::string::npos) << text;
}

TEST(Workers, HearWhatTheFirstHasToSay) {
  const auto errors = testing::run_threads(
      LeafSplit::one_each(3),
      [](Group& group) {
        const Workers workers(&group);
        const int rank = group.rank();
        EXPECT_EQ(workers.first_word("", "a word"), "");
        EXPECT_EQ(workers.first_word(rank == 2 ? "the last" : "", "a word"), "the last");
        EXPECT_EQ(workers.first_word(rank > 0 ? fmt::format("of worker {}", rank) : "", "a word"),
                  "of worker 1");
      },
      testing::test_options());
  testing::expect_no_errors(errors);
}

TEST(Workers, OneAloneAgreesWithItself) {
  Workers alone(nullptr);
  EXPECT_TRUE(alone.leads());
  alone.still_working("the evaluation");
  EXPECT_EQ(alone.agree(5, "the answer"), 5);
  EXPECT_EQ(alone.first_word("too much", "whether it fits"), "too much");
}

}  // namespace
}  // namespace lockstep
