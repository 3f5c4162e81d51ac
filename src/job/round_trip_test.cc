// What is printed of a job is a job: for every family and format, and every key that they have, it reads back
// to the same values.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/error.h"
#include "job/fields.h"
#include "job/parse.h"
#include "job/print.h"
#include "job/value.h"

namespace lockstep {
namespace {

std::string base_job(const ModelFamily& family, std::string_view format) {
  const bool generated = format == "synthetic";
  return fmt::format(
      "model: {{family: {}}}\n"
      "data: {{train: {{format: {}{}}}}}\n"
      "train: {{steps: 10, global_batch: 8, microbatch: 4, lr: {{base: 1e-3}}}}\n",
      family.name, format, generated ? "" : ", files: some");
}

std::map<std::string, std::string> values_of(const JobSpec& spec) {
  std::map<std::string, std::string> values;
  for (const Field& field : job_fields()) {
    if (field.is_ignored() || field.path().starts_with("workerPoolSpecs")) continue;
    if (!spec.origins.contains(std::string(field.path()))) continue;
    if (const auto text = value_text(field, spec)) values[std::string(field.path())] = *text;
  }
  return values;
}

void expect_read_back(const JobSpec& spec) {
  const std::string printed = to_yaml(spec);
  try {
    const JobSpec again = parse_job(printed, "kept.yaml");
    EXPECT_EQ(values_of(again), values_of(spec)) << printed;
  } catch (const UserError& error) {
    ADD_FAILURE() << error.what() << "\n" << printed;
  }
}

// The field with a value that is not its default, where it is there at all.
std::optional<JobSpec> with_field(const std::string& job, const Field& field) {
  std::vector<std::string> values = {field.sample()};
  for (const std::string_view choice : field.choices()) values.emplace_back(choice);
  if (field.type() == FieldType::kFlag) values = {"true", "false"};
  if (field.type() == FieldType::kSpan) values = {"33.333333333333333%", "1234567 samples", "17"};
  if (field.type() == FieldType::kNumber) values.emplace_back("0.30000000000000004");
  for (const std::string& value : values) {
    const std::vector<std::string> set = {fmt::format("{}={}", field.path(), value)};
    try {
      JobSpec spec = parse_job(job, "job.yaml", set);
      if (!value_text(field, spec)) continue;
      return spec;
    } catch (const UserError&) {
    }
  }
  return std::nullopt;
}

TEST(RoundTrip, EveryKeyOfEveryFamilyAndFormat) {
  int64_t tried = 0;
  for (const std::string_view format : ChoiceNames<DataFormat>::names) {
    for (const ModelFamily* family : model_families()) {
      // What a format adds does not depend on the family.
      if (format != "synthetic" && family->name != "tabular") continue;
      const std::string job = base_job(*family, format);
      expect_read_back(parse_job(job, "job.yaml"));
      for (const Field& field : job_fields()) {
        if (field.is_ignored() || field.path().starts_with("workerPoolSpecs")) continue;
        const auto spec = with_field(job, field);
        if (!spec) continue;
        ++tried;
        SCOPED_TRACE(fmt::format("{} {} {}", family->name, format, field.path()));
        expect_read_back(*spec);
      }
    }
  }
  EXPECT_GT(tried, 500);
}

// What nothing but a companion gives a meaning is not printed: read again, it would be something asked for.
TEST(RoundTrip, DefaultsWithoutAMeaningAreNotPrinted) {
  const std::string job =
      "model: {family: tabular}\ndata: {train: {format: csv, files: a.csv}}\n"
      "train: {steps: 1, global_batch: 1, microbatch: 1, lr: {base: 1}}\n";
  const std::string plain = to_yaml(parse_job(job, "job.yaml"));
  EXPECT_EQ(plain.find("subsample"), std::string::npos) << plain;
  EXPECT_EQ(plain.find("split"), std::string::npos) << plain;
  const std::vector<std::string> set = {"data.split.column=card", "data.subsample.where=\"y == 0\"",
                                        "data.subsample.keep=0.5"};
  const std::string full = to_yaml(parse_job(job, "job.yaml", set));
  for (const char* key : {"column: card", "eval: 0.1", "keep: 0.5", "reweight: true"})
    EXPECT_NE(full.find(key), std::string::npos) << full;
}

TEST(RoundTrip, Pools) {
  const JobSpec spec = parse_job(
      "model: {family: gpt}\ndata: {train: {format: synthetic}}\n"
      "train: {steps: 1, global_batch: 1, microbatch: 1, lr: {base: 1}}\n"
      "workerPoolSpecs: [{machineSpec: {machineType: \"a b\", acceleratorType: NVIDIA_L4, acceleratorCount: "
      "2}, replicaCount: 3}, {}]\n",
      "job.yaml");
  const JobSpec again = parse_job(to_yaml(spec), "kept.yaml");
  ASSERT_EQ(again.workerPoolSpecs.size(), 2U);
  EXPECT_EQ(again.workerPoolSpecs[0].machineSpec.machineType, "a b");
  EXPECT_EQ(again.workerPoolSpecs[0].machineSpec.acceleratorCount, 2);
  EXPECT_EQ(again.workerPoolSpecs[0].replicaCount, 3);
  EXPECT_EQ(again.workerPoolSpecs[1].replicaCount, 0);
}

}  // namespace
}  // namespace lockstep
