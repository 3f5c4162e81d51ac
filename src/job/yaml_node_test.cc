// What the YAML reader gives and what it refuses before anything grows.
#include "job/yaml_node.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

std::string error_of(std::string_view text) {
  try {
    read_yaml(text, "job.yaml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Yaml, NodesKnowTheirLines) {
  const YamlNode root = read_yaml("a: 1\nb:\n  c: [x, \"2\"]\n", "job.yaml");
  ASSERT_TRUE(root.is_map());
  EXPECT_EQ(root.entries[1].key, "b");
  EXPECT_EQ(root.entries[1].line, 2);
  const YamlNode& list = root.entries[1].value.entries[0].value;
  EXPECT_EQ(list.line, 3);
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
}

TEST(Yaml, AliasesRepeatTheirValue) {
  const YamlNode root = read_yaml("a: &x {n: 1}\nb: *x\n", "job.yaml");
  EXPECT_EQ(root.entries[1].value.entries[0].key, "n");
}

TEST(Yaml, ExpansionIsCountedNotPerformed) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    text += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) text += fmt::format("{}*a{}", j == 0 ? "" : ", ", i - 1);
    text += "]\n";
  }
  EXPECT_NE(error_of(text).find("expands to more than 50000 values"), std::string::npos) << error_of(text);
}

TEST(Yaml, AliasesCannotNestBeyondTheLimit) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 60; ++i) text += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  EXPECT_NE(error_of(text).find("nest values more than 32 deep"), std::string::npos) << error_of(text);
}

TEST(Yaml, DepthIsBoundedInEveryStyle) {
  const std::string brackets = std::string(50'000, '[') + std::string(50'000, ']');
  EXPECT_NE(error_of("a: " + brackets).find("nested more than 32 deep"), std::string::npos);
  EXPECT_NE(error_of("a: " + std::string(100'000, '{')).find("job.yaml:1"), std::string::npos);
  std::string dashes = "a:\n";
  for (int i = 0; i < 50'000; ++i) dashes += "- ";
  EXPECT_NE(error_of(dashes + "x\n").find("nested more than 32 deep"), std::string::npos);
  std::string questions;
  for (int i = 0; i < 50'000; ++i) questions += "? ";
  EXPECT_NE(error_of(questions + "x\n").find("job.yaml:1"), std::string::npos);
}

TEST(Yaml, ManyKeysStayWithinTheLimit) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += fmt::format("k{}: 1\n", i);
  EXPECT_NE(error_of(text).find("more than 50000 values"), std::string::npos) << error_of(text);
}

TEST(Yaml, EncodingsOtherThanUtf8AreNamed) {
  EXPECT_EQ(error_of("name: caf\xe9\n"), "job.yaml:1: a byte 0xe9 is not UTF-8; save the file as UTF-8 text");
  EXPECT_EQ(error_of(std::string_view("\xff\xfe"
                                      "n\0",
                                      4)),
            "job.yaml:1: the text is UTF-16; save it as UTF-8");
  EXPECT_EQ(error_of("name: caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x80\n"), "");
}

}  // namespace
}  // namespace lockstep
