// The schema against the table they come from.
#include "job/schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "job/parse.h"
#include "job/templates.h"
#include "job/value.h"

namespace lockstep {
namespace {

TEST(Schema, EveryFieldHasAPlaceInIt) {
  const auto schema = nlohmann::json::parse(job_schema());
  for (const Field& field : job_fields()) {
    std::string pointer = "/properties/";
    for (size_t i = 0; i < field.path().size(); ++i) {
      if (field.path()[i] == '.')
        pointer += "/properties/";
      else if (field.path()[i] == '[')
        pointer += "/items", ++i;
      else
        pointer += field.path()[i];
    }
    EXPECT_TRUE(schema.contains(nlohmann::json::json_pointer(pointer))) << pointer;
  }
  EXPECT_EQ(schema["properties"]["train"]["properties"]["microbatch"]["minimum"], 1);
  EXPECT_EQ(schema["properties"]["train"]["additionalProperties"], false);
  EXPECT_EQ(schema["properties"]["train"]["properties"]["precision"]["enum"],
            (nlohmann::json{"fp32", "bf16", "bf16_pure", "tf32"}));
}

// A field's example is what errors tell people to write, so it has to be accepted.
TEST(Schema, ExamplesAndDefaultsAreAccepted) {
  for (const Field& field : job_fields()) {
    if (field.is_ignored()) continue;
    SCOPED_TRACE(field.path());
    JobSpec spec;
    spec.workerPoolSpecs.emplace_back();
    EXPECT_NO_THROW(assign_value(field, read_yaml(field.sample(), "sample"), {"sample", "x"}, spec))
        << field.sample();
    for (const auto& [value, fallback] : field.cases())
      if (!fallback.empty()) {
        EXPECT_NO_THROW(assign_value(field, read_yaml(fallback, "case"), {"case", "x"}, spec)) << fallback;
      }
    EXPECT_FALSE(field.doc().empty());
    EXPECT_TRUE(field.selector().empty() || find_field(field.selector()) != nullptr);
  }
}

// A family is described in one place; the job file must know all of it.
TEST(Families, HaveTheirKeysAndATemplate) {
  for (const ModelFamily* family : model_families()) {
    SCOPED_TRACE(family->name);
    for (const std::string_view key : family->keys) {
      const Field* field = find_field(fmt::format("model.{}", key));
      ASSERT_NE(field, nullptr) << key;
      EXPECT_TRUE(
          std::ranges::any_of(field->cases(), [&](const auto& one) { return one.first == family->name; }));
    }
    EXPECT_TRUE(std::ranges::any_of(job_templates(), [&](const JobTemplate& one) {
      return parse_job(one.text, "template").model.family == family;
    }));
  }
}

}  // namespace
}  // namespace lockstep
