#include "base/sha256.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// FIPS 180-2, appendix B.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, PiecesHashLikeTheWhole) {
  Sha256 pieces;
  pieces.update("ab");
  pieces.update("c");
  EXPECT_EQ(pieces.finish(), sha256("abc"));
}

}  // namespace
}  // namespace lockstep
