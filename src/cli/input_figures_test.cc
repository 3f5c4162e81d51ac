// The sums by which bench/input.py sees that a pipeline gave the records that are in the files.
#include "cli/input_figures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "job/parse.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int kRows = 96;

class InputFigures : public ::testing::Test {
 protected:
  // A table of one number and one label a row, where row i has the label of row i + `moved`.
  json gate_of(const std::string& name, int moved, const std::string& shuffle) {
    std::string table = "x,y\n";
    for (int row = 0; row < kRows; ++row)
      table += fmt::format("{},{}\n", row * row, ((row + moved) % kRows) % 3 == 0 ? 1 : 0);
    folder_.write(name + ".csv", table);
    const std::string job = folder_.path("job.yaml");
    folder_.write("job.yaml",
                  fmt::format("name: sums\n"
                              "model: {{family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}}\n"
                              "data: {{train: {{format: csv, files: {}, label: y}}, shuffle: {}}}\n"
                              "train: {{steps: 1, global_batch: 8, microbatch: 8, lr: {{base: 0.1}}}}\n",
                              folder_.path(name + ".csv"), shuffle));
    return input_figures(load_job(job, {}), {.warm_up = 0, .seconds = 0.01, .check = true})["gate"];
  }

 private:
  TestFolder folder_;
};

double value(const json& gate, const char* column, const char* sum) {
  return gate["columns"][column][sum].get<double>();
}

TEST_F(InputFigures, AnOrderChangesNoSum) {
  const json mixed = gate_of("mixed", 0, "global"), ordered = gate_of("ordered", 0, "none");
  EXPECT_EQ(mixed["records"], kRows);
  EXPECT_NEAR(mixed["tie"].get<double>(), ordered["tie"].get<double>(), 1e-9);
  for (const char* column : {"dense", "labels"})
    EXPECT_NEAR(value(mixed, column, "squares"), value(ordered, column, "squares"), 1e-9) << column;
}

TEST_F(InputFigures, LabelsOfOtherRecordsAreSeen) {
  const json right = gate_of("right", 0, "global"), moved = gate_of("moved", 1, "global");
  for (const char* column : {"dense", "labels"})
    for (const char* sum : {"sum", "squares"})
      EXPECT_NEAR(value(right, column, sum), value(moved, column, sum), 1e-9) << column << " " << sum;
  EXPECT_GT(std::abs(right["tie"].get<double>() - moved["tie"].get<double>()), 0.1);
}

}  // namespace
}  // namespace lockstep
