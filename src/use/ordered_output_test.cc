#include "use/ordered_output.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

std::string written_by(int threads, int64_t pieces, int64_t waiting, bool in_turn) {
  std::string all;
  OrderedOutput output([&](std::string_view bytes) { all += bytes; }, waiting);
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t piece = next++; piece < pieces; piece = next++) {
      if (in_turn)
        output.make_in_turn(piece, [&](std::string& bytes) { bytes = fmt::format("{} ", piece); });
      else
        output.put(piece, fmt::format("{} ", piece));
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return all;
}

TEST(OrderedOutput, WritesInOrderWhoeverIsFirst) {
  std::string expected;
  for (int i = 0; i < 500; ++i) expected += fmt::format("{} ", i);
  for (const int threads : {1, 2, 5})
    for (const int64_t waiting : {1, 3, 100}) {
      EXPECT_EQ(written_by(threads, 500, waiting, false), expected);
      EXPECT_EQ(written_by(threads, 500, waiting, true), expected);
    }
}

TEST(OrderedOutput, WaitsForTheFirst) {
  std::string all;
  OrderedOutput output([&](std::string_view bytes) { all += bytes; }, 8);
  output.put(2, "c");
  output.put(1, "b");
  EXPECT_EQ(all, "");
  output.put(0, "a");
  EXPECT_EQ(all, "abc");
}

TEST(OrderedOutput, StoppedItLetsEverybodyGo) {
  OrderedOutput output([](std::string_view) {}, 1);
  std::thread waits([&] { output.put(5, "never written"); });
  std::thread waits_too([&] { output.make_in_turn(7, [](std::string&) { FAIL(); }); });
  output.stop();
  waits.join();
  waits_too.join();
  output.put(9, "nor this");
}

TEST(OrderedOutput, WhatWritingThrowsReachesTheWriter) {
  OrderedOutput output([](std::string_view) { throw std::runtime_error("full"); }, 2);
  EXPECT_THROW(output.put(0, "a"), std::runtime_error);
}

}  // namespace
}  // namespace lockstep
