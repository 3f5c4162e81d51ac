// Replays the corpus of the fuzzer: inputs that once failed, and one of each kind.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzz/graph_text.h"

namespace lockstep::testing {
namespace {

TEST(FuzzCorpus, EveryTextIsAGraphOrAUserError) {
  int graphs = 0;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LOCKSTEP_FUZZ_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    ++files;
    EXPECT_NO_THROW(graphs += check_graph_text(text.str()) ? 1 : 0) << entry.path();
  }
  EXPECT_GT(graphs, 0);
  EXPECT_GT(files, graphs);
}

}  // namespace
}  // namespace lockstep::testing
