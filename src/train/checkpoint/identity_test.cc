#include "train/checkpoint/identity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {
namespace {

Identity job(int64_t seed) {
  Identity identity;
  identity.add("contract", 1);
  identity.add("model", "gpt:layers=2");
  identity.add("train.seed", seed);
  identity.add("train.lr", 0.1);
  identity.add("train.nesterov", false);
  return identity;
}

TEST(Identity, DiffNamesTheFieldsThatDiffer) {
  EXPECT_EQ(diff(job(7), job(7)), "");
  EXPECT_EQ(diff(job(7), job(8)), "train.seed: checkpoint 7, job 8\n");
  Identity more = job(7);
  more.add("train.leaves", 16);
  EXPECT_EQ(diff(job(7), more), "train.leaves: checkpoint has none, job 16\n");
  EXPECT_EQ(diff(more, job(7)), "train.leaves: checkpoint 16, job has none\n");
}

TEST(Identity, HashSeesNamesAndValuesButNotTheirOrder) {
  EXPECT_EQ(job(7).sha256(), job(7).sha256());
  EXPECT_NE(job(7).sha256(), job(8).sha256());
  Identity ab;
  ab.add("a", "1");
  ab.add("b", "2");
  Identity ba;
  ba.add("b", "2");
  ba.add("a", "1");
  EXPECT_EQ(ab.sha256(), ba.sha256());
  Identity shifted;
  shifted.add("a", "11:b1:2");
  Identity split;
  split.add("a1", "1:b1:2");
  EXPECT_NE(shifted.sha256(), split.sha256());
  EXPECT_NE(shifted.sha256(), ab.sha256());
}

TEST(Identity, KeepsExactNumbersAndOrderThroughJson) {
  Identity identity = job(7);
  identity.add("big", UINT64_MAX);
  identity.add("third", 1.0 / 3.0);
  EXPECT_EQ(identity.fields()[5].value, "18446744073709551615");
  EXPECT_EQ(std::stod(identity.fields()[6].value), 1.0 / 3.0);
  EXPECT_EQ(identity.fields()[4].value, "false");
  const nlohmann::json text = nlohmann::json::parse(to_json(identity).dump());
  EXPECT_EQ(identity_from_json(text).fields(), identity.fields());
}

TEST(Identity, AFieldIsGivenOnce) {
  Identity identity = job(7);
  EXPECT_THROW(identity.add("train.seed", 8), InternalError);
}

}  // namespace
}  // namespace lockstep
