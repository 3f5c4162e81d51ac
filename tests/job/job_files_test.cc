// Whole job files through the command line: every bad one gives exit code 2 and says what to write instead;
// every template passes; the committed reference page is the printed one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/file.h"
#include "cli/cli.h"
#include "data/transform/settings.h"
#include "job/parse.h"
#include "job/schema.h"
#include "job/templates.h"

namespace lockstep {
namespace {

struct Result {
  int code;
  std::string out, error;
};

// Collects what is written to a stream while it lives.
class Capture {
 public:
  explicit Capture(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
  ~Capture() { stream_.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::ostream& stream_;
  std::streambuf* before_;
};

Result lockstep(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "lockstep");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  Capture out(std::cout), error(std::cerr);
  const int code = run_cli(static_cast<int>(pointers.size()), pointers.data());
  return {code, out.text(), error.text()};
}

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// The first line of a bad file is "# expect: " and a part of the message.
TEST(JobFiles, BadOnesSayWhatToWriteInstead) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LOCKSTEP_BAD_JOBS)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream in(entry.path());
    std::string expected;
    std::getline(in, expected);
    constexpr std::string_view kMark = "# expect: ";
    ASSERT_TRUE(expected.starts_with(kMark));
    expected.erase(0, kMark.size());
    ++files;

    const Result result = lockstep({"check", entry.path()});
    EXPECT_EQ(result.code, 2);
    EXPECT_NE(result.error.find(expected), std::string::npos)
        << "expected " << expected << "\ngot      " << result.error;
    EXPECT_TRUE(result.error.starts_with("lockstep: " + entry.path().string() + ":")) << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_EQ(result.out, "") << "nothing is printed for a job that cannot run";
  }
  EXPECT_GE(files, 40);
}

TEST(JobFiles, AHundredMegabytesAreRefusedUnread) {
  const TemporaryFolder folder;
  const std::string path = folder.file("large.yaml");
  std::ofstream(path) << "name: large\n";
  std::filesystem::resize_file(path, 100'000'000);  // a hole: costs no disk
  const Result result = lockstep({"check", path});
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.error.find("more than 1048576 bytes are too many for a job file"), std::string::npos)
      << result.error;
  EXPECT_NE(result.error.find("name data files under data.train.files"), std::string::npos);
}

TEST(JobFiles, NoFileAFolderAndAnEmptyFile) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("empty.yaml")).flush();
  EXPECT_NE(lockstep({"check", folder.file("absent.yaml")}).error.find("lockstep init --template"),
            std::string::npos);
  EXPECT_NE(lockstep({"check", folder.file("")}).error.find("name the job file in it"), std::string::npos);
  EXPECT_NE(lockstep({"check", folder.file("empty.yaml")}).error.find("the file says nothing"),
            std::string::npos);
}

TEST(JobFiles, EveryTemplatePasses) {
  const TemporaryFolder folder;
  for (const JobTemplate& one : job_templates()) {
    const std::string path = folder.file(std::string(one.name) + ".yaml");
    // Their model and data are the user's.
    const bool needs_files = one.name.starts_with("hf-");
    EXPECT_EQ(lockstep({"init", "--template", std::string(one.name)}).out, one.text);
    EXPECT_EQ(lockstep({"init", "--template", std::string(one.name), path}).code, 0);
    const Result check = lockstep({"check", path, "--set", "train.lr.base=0.125"});
    EXPECT_EQ(check.code, needs_files ? 2 : 0) << check.error;
    if (needs_files) {
      EXPECT_NE(check.error.find("model.hf"), std::string::npos) << check.error;
    } else {
      EXPECT_NE(check.out.find("base: 0.125"), std::string::npos);
      EXPECT_NE(check.out.find("# --set"), std::string::npos);
    }
    const Result again = lockstep({"init", "--template", std::string(one.name), path});
    EXPECT_EQ(again.code, 2);
    EXPECT_NE(again.error.find("is there already"), std::string::npos);
  }
  EXPECT_NE(lockstep({"init", "--template", "bert"})
                .error.find("use encoder, fraud, gpt, hf-finetune, hf-lora, llama, resnet"),
            std::string::npos);
}

TEST(JobFiles, TheCommittedPageIsThePrintedOne) {
  EXPECT_EQ(read_file(LOCKSTEP_DOCS "/job-file.md"), job_reference())
      << "print it again with: lockstep schema --markdown > docs/job-file.md";
  EXPECT_EQ(read_file(LOCKSTEP_DOCS "/transforms.md"), transform_reference())
      << "print it again with: lockstep data transforms --markdown > docs/transforms.md";
}

// A transform that is made checks that all its settings are described, and no others.
TEST(JobFiles, ExamplesOfTransformsCanBeMade) {
  for (const TransformEntry* entry : transform_entries()) {
    if (entry->example.empty()) continue;
    const JobSpec spec = parse_job(
        "model: {family: tabular}\n"
        "data: {train: {format: csv, files: t, transforms: [" +
            std::string(entry->example) +
            "]}}\n"
            "train: {steps: 1, global_batch: 1, microbatch: 1, lr: {base: 1}}\n",
        "job.yaml", {});
    ASSERT_EQ(spec.data.train.transforms.size(), 1U);
    const TransformSpec& made = spec.data.train.transforms[0];
    EXPECT_NE(make_transform({made.name, {made.settings.begin(), made.settings.end()}}), nullptr);
  }
}

}  // namespace
}  // namespace lockstep
