// Set-up of the tests of whole runs: a folder with job files, runs by name in it, and what they leave behind.
#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "observe/metrics_reader.h"
#include "observe/summary.h"
#include "run/lockstep_process.h"

namespace lockstep {

// Job files that train in well under a second: without `output`, which a run gets by name.
extern const char* const kGptJob;      // with dropout
extern const char* const kLlamaJob;    // grouped key heads, bf16
extern const char* const kTabularJob;  // with gradients by rows, a moving average, records held out
extern const char* const kEncoderJob;  // bf16, global batch 256 in microbatches of 32
extern const char* const kResnetJob;   // with running statistics

// One of these as the parameter of a test, which is named by the job's name.
struct NamedJob {
  NamedJob(const char* job) : text(job) {}       // NOLINT(google-explicit-constructor)
  operator const char*() const { return text; }  // NOLINT(google-explicit-constructor)
  const char* text;
};
void PrintTo(const NamedJob& job, std::ostream* out);

class TrainCase {
 public:
  explicit TrainCase(const std::string& job) { folder_.write("job.yaml", job); }

  const TestFolder& folder() const { return folder_; }
  std::string output(const std::string& run) const { return folder_.path(run); }

  // `lockstep train` with the output folder of `run`; more are its further arguments, settings key=value.
  std::vector<std::string> arguments(const std::string& run, const std::vector<std::string>& settings,
                                     const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> all = {"train", folder_.path("job.yaml"), "--set", "output=" + output(run)};
    for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  Ended train(const std::string& run, const std::vector<std::string>& settings = {},
              const std::vector<std::string>& flags = {}) const {
    return LockstepProcess(arguments(run, settings, flags), log(run)).wait();
  }
  // One that must reach its end.
  RunSummary trained(const std::string& run, const std::vector<std::string>& settings = {},
                     const std::vector<std::string>& flags = {}) const;

  RunSummary summary(const std::string& run) const { return read_summary(output(run) + "/summary.json"); }
  Metrics metrics(const std::string& run) const { return read_metrics(output(run) + "/metrics.jsonl"); }
  std::string log(std::string run) const {
    std::replace(run.begin(), run.end(), '/', '-');
    return folder_.path(run + "-log");
  }
  std::vector<std::string> names(const std::string& run) const;  // of what lies in its folder, sorted
  bool has(const std::string& run, const std::string& name) const {
    return std::filesystem::exists(output(run) + "/" + name);
  }
  std::string text(const std::string& run, const std::string& name) const {
    return read_file(output(run) + "/" + name);
  }

 private:
  TestFolder folder_;
};

// The value of "step" and, where they are doubles, the bits of loss, gradient norm and learning rate of each
// step are those of the other run.
void expect_same_steps(const Metrics& found, const Metrics& expected);
// The same scores at the same steps.
void expect_same_evaluations(const Metrics& found, const Metrics& expected);

}  // namespace lockstep
