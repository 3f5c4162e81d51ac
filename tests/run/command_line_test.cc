// The command line itself: names that nobody knows, the version, help on topics and keys, completion in a
// shell.
#include <gtest/gtest.h>

#include "base/version.h"
#include "run/lockstep_process.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

Ended lockstep(const std::vector<std::string>& arguments) {
  const TestFolder folder;
  return LockstepProcess(arguments, folder.path("log")).wait();
}

std::string refused(const std::vector<std::string>& arguments) {
  const Ended ended = lockstep(arguments);
  EXPECT_EQ(ended.code, 2) << ended.out;
  EXPECT_EQ(ended.out, "");
  return ended.err;
}

TEST(CommandLine, UnknownNamesGetTheNearestOne) {
  EXPECT_EQ(refused({"trian", "job.yaml"}), "lockstep: unknown command trian; did you mean train?\n");
  EXPECT_EQ(refused({"data", "convrt", "a.csv"}),
            "lockstep: unknown command data convrt; did you mean convert?\n");
  EXPECT_EQ(refused({"train", "--fersh"}),
            "lockstep: unknown option --fersh of lockstep train; did you mean --fresh?\n");
  EXPECT_EQ(refused({"train", "job.yaml", "--set", "--a=b", "--ste=x"}),
            "lockstep: unknown option --ste of lockstep train; did you mean --set?\n");
  EXPECT_EQ(refused({"--verison"}),
            "lockstep: unknown option --verison of lockstep; did you mean --version?\n");
  EXPECT_NE(refused({"data", "synth", "wizardry", "--out", "x"}).find("known: fraud\n"), std::string::npos);
  // Names are known, something else is wrong.
  EXPECT_NE(refused({"train"}).find("train needs a job file"), std::string::npos);
  EXPECT_NE(refused({}).find("A subcommand is required"), std::string::npos);
}

TEST(CommandLine, TellsItsVersion) {
  for (const char* way : {"--version", "version"}) {
    const Ended ended = lockstep({way});
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.out, fmt::format("lockstep {}\n", kVersion));
  }
}

std::string help(const std::vector<std::string>& topic) {
  std::vector<std::string> arguments = topic;
  arguments.insert(arguments.begin(), "help");
  const Ended ended = lockstep(arguments);
  EXPECT_EQ(ended.code, 0) << ended.err;
  return ended.out;
}

TEST(CommandLine, HelpsOnTopicsCommandsAndKeys) {
  const std::string all = help({});
  for (const char* name : {"train ", "export ", "job-file ", "errors ", "launching ", "data "})
    EXPECT_NE(all.find(fmt::format("  {}", name)), std::string::npos) << name << " in\n" << all;
  EXPECT_NE(help({"errors"}).find("\n   75  preempted"), std::string::npos);
  EXPECT_NE(help({"data", "synth", "fraud"}).find("Usage: lockstep data synth fraud"), std::string::npos);
  EXPECT_NE(help({"data"}).find("The command of this name: lockstep data --help"), std::string::npos);
  // A command and a section of the job file.
  const std::string train = help({"train"});
  EXPECT_NE(train.find("--nproc-per-node"), std::string::npos);
  EXPECT_NE(train.find("  train.global_batch "), std::string::npos);
  const std::string key = help({"train.lr.warmup"});
  EXPECT_TRUE(key.starts_with("train.lr.warmup\n")) << key;
  EXPECT_NE(key.find("  value:   steps such as 200"), std::string::npos) << key;
  EXPECT_NE(key.find("  also:    "), std::string::npos) << key;
  EXPECT_NE(help({"train.lr"}).find("  train.lr.decay "), std::string::npos);
  EXPECT_EQ(refused({"help", "train.lr.bas"}),
            "lockstep: there is no help on train.lr.bas; did you mean train.lr.base?\n");
  EXPECT_EQ(refused({"help", "quantum gravity"}),
            "lockstep: there is no help on quantum gravity; lockstep help lists the topics\n");
}

// What bash would offer for the last word.
std::string completed(const TestFolder& folder, const std::string& words) {
  folder.write("ask.sh",
               fmt::format("set -u\nsource {}\nCOMP_WORDS=({})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
                           "_lockstep\necho \"${{COMPREPLY[*]-}}\"\n",
                           folder.path("completion.bash"), words));
  const Ended ended =
      ChildProcess({"/bin/bash", "--norc", folder.path("ask.sh")}, folder.path("bash-log")).wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  return ended.out;
}

TEST(CommandLine, CompletesInBash) {
  if (!std::filesystem::exists("/bin/bash")) GTEST_SKIP() << "there is no bash";
  const TestFolder folder;
  folder.write("completion.bash", lockstep({"completion", "bash"}).out);
  EXPECT_EQ(completed(folder, "lockstep tra"), "train\n");
  EXPECT_EQ(completed(folder, "lockstep data co"), "convert\n");
  EXPECT_EQ(completed(folder, "lockstep data synth fraud --form"), "--format\n");
  EXPECT_EQ(completed(folder, "lockstep train job.yaml --nproc"), "--nproc-per-node\n");
  EXPECT_EQ(completed(folder, "lockstep export runs/a --to on"), "onnx\n");
  EXPECT_EQ(completed(folder, "lockstep train job.yaml --set train.lr.warm"), "train.lr.warmup=\n");
  EXPECT_EQ(completed(folder, "lockstep completion z"), "zsh\n");
  EXPECT_EQ(completed(folder, "lockstep help launch"), "launching\n");
  EXPECT_EQ(completed(folder, "lockstep --v"), "--version\n");
  // Files are the shell's own business.
  EXPECT_EQ(completed(folder, "lockstep train jo"), "\n");
  EXPECT_EQ(completed(folder, "lockstep export runs/a --out x"), "\n");
}

TEST(CommandLine, CompletesInZsh) {
  const std::string script = lockstep({"completion", "zsh"}).out;
  EXPECT_TRUE(script.starts_with("#compdef lockstep\n"));
  EXPECT_NE(script.find("'train:train what a job file describes'"), std::string::npos);
  EXPECT_NE(script.find("('export --to') compadd -- hf peft safetensors onnx; return ;;"), std::string::npos)
      << script;
  for (const char* blank : {"@PATHS@", "@VALUES@", "@FREE@", "@OPTIONS@", "@ARGUMENTS@"})
    EXPECT_EQ(script.find(blank), std::string::npos) << blank << " was not filled in";
  const char* const zsh = "/usr/bin/zsh";
  if (!std::filesystem::exists(zsh)) return;
  const TestFolder folder;
  folder.write("_lockstep", script);
  const Ended ended = ChildProcess({zsh, "-n", folder.path("_lockstep")}, folder.path("zsh-log")).wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// A terminal for the whole program: worker 0's line is rewritten in place, without the worker's name.
TEST(CommandLine, ShowsOneLiveLineForSeveralWorkers) {
  const char* const script = "/usr/bin/script";
  if (!std::filesystem::exists(script)) GTEST_SKIP() << "there is no " << script;
  const TrainCase job(kGptJob);
  std::string command = LOCKSTEP_PROGRAM;
  for (const std::string& argument : job.arguments("run", {"strategy.workers=2"})) command += " " + argument;
  const Ended ended = ChildProcess({script, "-qec", command, "/dev/null"}, job.log("script")).wait();
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_NE(ended.out.find("\rstep 1/30  loss "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("worker-0 | step 30/30  loss "), std::string::npos) << "what stays in the end";
  EXPECT_EQ(ended.out.find("worker-0 | step 1/30"), std::string::npos);
  // The logs are plain.
  const std::string log = job.text("run", "logs/worker-0.log");
  EXPECT_NE(log.find("step 1/30  loss "), std::string::npos) << log;
  EXPECT_EQ(log.find('\r'), std::string::npos);
  EXPECT_EQ(log.find('\x1b'), std::string::npos);
}

TEST(CommandLine, RefusesAnotherShell) {
  EXPECT_NE(refused({"completion", "fish"}).find("fish"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
