#include "launch/node_list.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

std::string nodes(std::string_view list) {
  return fmt::format("{}", fmt::join(expand_node_list(list, "LIST"), " "));
}
std::string tasks(std::string_view list) {
  return fmt::format("{}", fmt::join(expand_tasks_per_node(list, "TASKS"), " "));
}

TEST(NodeList, Expands) {
  EXPECT_EQ(nodes("login1"), "login1");
  EXPECT_EQ(nodes("gpu[001-003,007],login1"), "gpu001 gpu002 gpu003 gpu007 login1");
  EXPECT_EQ(nodes("n[8-11]"), "n8 n9 n10 n11");
  EXPECT_EQ(nodes("r[1-2]n[1,3]-ib,x"), "r1n1-ib r1n3-ib r2n1-ib r2n3-ib x");
  EXPECT_EQ(nodes("[1-2]"), "1 2");
}

TEST(NodeList, RefusesWhatIsNoList) {
  for (const char* list : {"", ",", "a,", ",a", "a[1", "a]1", "a[2-1]", "a[x]", "a[]", "a[1-]", "a[-1]",
                           "a[1,]", "a b", "a[0-999999999]", "a[0-999][0-999]", "a[12345678901]"})
    EXPECT_THROW(expand_node_list(list, "LIST"), UserError) << list;
  try {
    expand_node_list("gpu[4-1]", "SLURM_JOB_NODELIST");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "SLURM_JOB_NODELIST='gpu[4-1]': '4-1' goes down; it should read like gpu[001-004,007],login1");
  }
}

TEST(NodeList, TasksPerNode) {
  EXPECT_EQ(tasks("4"), "4");
  EXPECT_EQ(tasks("1(x4)"), "1 1 1 1");
  EXPECT_EQ(tasks("4(x2),3,1(x1)"), "4 4 3 1");
  for (const char* list : {"", "0", "x", "1(x", "1(x)", "1(x0)", "1(x99999)", "1,", "-1", "(x2)", "1(x2)3"})
    EXPECT_THROW(expand_tasks_per_node(list, "TASKS"), UserError) << list;
}

}  // namespace
}  // namespace lockstep
