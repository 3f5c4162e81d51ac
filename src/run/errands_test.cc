#include "run/errands.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "base/error.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

// What the thread that asks gets to hear.
template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Errands, AreDoneByTheThreadThatAnswers) {
  Errands errands;
  std::thread::id done_by;
  int done = 0;
  std::thread asks([&, ask = errands.asker()] {
    for (int i = 0; i < 3; ++i) ask([&] { done_by = std::this_thread::get_id(), ++done; });
  });
  while (done < 3) errands.answer(1h);
  asks.join();
  EXPECT_EQ(done_by, std::this_thread::get_id());
}

TEST(Errands, WhatOneThrowsIsThrownToBoth) {
  Errands errands;
  std::string heard;
  std::thread asks([&, ask = errands.asker()] {
    heard = error_of([&] { ask([] { throw UserError("no"); }); });
    ask([] {});
  });
  EXPECT_EQ(error_of([&] { errands.answer(1h); }), "no");
  errands.answer(1h);
  asks.join();
  EXPECT_EQ(heard, "no");
}

TEST(Errands, WhoAsksAQueueThatIsGoneGetsAnError) {
  auto errands = std::make_unique<Errands>();
  const Errands::Ask ask = errands->asker();
  errands.reset();
  EXPECT_EQ(error_of([&] { ask([] { FAIL(); }); }),
            "the other workers were not there to be asked for their state");
}

}  // namespace
}  // namespace lockstep
