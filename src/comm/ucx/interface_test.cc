#include "comm/ucx/interface.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(UcxInterface, LoopbackLeadsToThisHost) { EXPECT_EQ(ucx::interface_towards("127.0.0.1"), "lo"); }

TEST(UcxInterface, NoneForAHostThatIsNot) { EXPECT_EQ(ucx::interface_towards("no such host"), ""); }

}  // namespace
}  // namespace lockstep
