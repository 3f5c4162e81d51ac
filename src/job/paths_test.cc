#include "job/paths.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "job/parse.h"
#include "job/print.h"

namespace lockstep {
namespace {

std::optional<std::string> variable(const std::string& name) {
  if (name == "HOME") return "/home/me";
  if (name == "SCRATCH") return "/scratch";
  if (name == "BUCKET") return "gs://models";
  return std::nullopt;
}

std::string error_of(const std::string& text) {
  try {
    return "accepted as " + expanded_path(text, variable);
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(Paths, WhatAShellWouldReplaceIsReplaced) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"runs/fraud", "runs/fraud"},
                                                                  {"~", "/home/me"},
                                                                  {"~/runs", "/home/me/runs"},
                                                                  {"$SCRATCH/tx", "/scratch/tx"},
                                                                  {"${SCRATCH}_2", "/scratch_2"},
                                                                  {"a$$b", "a$b"},
                                                                  {"cost$", "cost$"},
                                                                  {"$5", "$5"},
                                                                  {"runs/~old", "runs/~old"},
                                                                  {"$SCRATCH/$HOME", "/scratch//home/me"}};
  for (const auto& [text, path] : cases) EXPECT_EQ(expanded_path(text, variable), path);
}

TEST(Paths, WhatCannotBeReplacedIsRefused) {
  EXPECT_EQ(
      error_of("$NOWHERE/runs"),
      "'$NOWHERE/runs', and NOWHERE is not set in the environment; set it, or write the path out ($$ is "
      "a dollar sign)");
  EXPECT_NE(error_of("~bob/runs").find("write the path of that folder out"), std::string::npos);
  EXPECT_NE(error_of("${SCRATCH/runs").find("write ${NAME}"), std::string::npos);
  EXPECT_NE(error_of("${}").find("write ${NAME}"), std::string::npos);
}

TEST(Paths, AddressesAreRefused) {
  EXPECT_EQ(error_of("gs://models/fraud"),
            "'gs://models/fraud', and only files and folders are read and written; mount it as a folder, and "
            "write its path, for example /gcs/models/fraud");
  for (const char* address : {"s3://bucket/x", "hdfs://host:9000/x", "https://host/x.csv", "$BUCKET/x"})
    EXPECT_NE(error_of(address).find("mount it as a folder"), std::string::npos) << error_of(address);
  EXPECT_NE(error_of("file:///data/x").find("; write /data/x"), std::string::npos)
      << error_of("file:///data/x");
}

TEST(Paths, TheTextOfAPathIsReadAsThatPath) {
  for (const char* path : {"runs/a", "a$b", "$HOME", "${x", "~", "~/x", "$$"}) {
    const std::string again = expanded_path(path_text(path), variable);
    EXPECT_TRUE(again == path || again == std::string("./") + path) << again;
  }
}

std::string job(const std::string& data, const std::string& rest = "") {
  return "model: {family: tabular}\ndata: " + data +
         "\ntrain: {steps: 1, global_batch: 1, microbatch: 1, lr: {base: 1}}\n" + rest;
}

TEST(Paths, OfAJobAreExpandedAndPrintedSoThatTheyAreReadAgain) {
  ::setenv("LOCKSTEP_TEST_FOLDER", "/data/$x", 1);
  ::setenv("HOME", "/home/me", 1);
  const JobSpec spec = parse_job(job("{train: {format: csv, files: [$LOCKSTEP_TEST_FOLDER/*.csv, b.csv]}}",
                                     "checkpoint: {dir: ~/checkpoints}\n"),
                                 "job.yaml");
  EXPECT_EQ(spec.data.train.files[0], "/data/$x/*.csv");
  EXPECT_EQ(spec.checkpoint.dir, "/home/me/checkpoints");
  const JobSpec again = parse_job(to_yaml(spec), "kept.yaml");
  EXPECT_EQ(again.data.train.files, spec.data.train.files);
  EXPECT_EQ(again.checkpoint.dir, spec.checkpoint.dir);
}

TEST(Paths, OfAJobThatAreAddressesNameTheLine) {
  for (const char* key : {"output", "checkpoint.dir", "data.train.files", "data.cache_folder"}) {
    const std::vector<std::string> set = {std::string(key) + "=gs://bucket/x"};
    try {
      parse_job(job("{train: {format: csv, files: a.csv}}"), "job.yaml", set);
      ADD_FAILURE() << key;
    } catch (const UserError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(std::string("--set: ") + key + " is 'gs://bucket/x'"))
          << error.what();
    }
  }
}

}  // namespace
}  // namespace lockstep
