// The job that is kept with a run is a job: for every template and every format it runs again as it is, to
// the same identity and weights. No file of the user's is taken for it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "data/testing/test_corpora.h"
#include "data/testing/test_images.h"
#include "job/templates.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

void expect_runs_again(const TrainCase& job, const std::string& run, const Settings& settings) {
  SCOPED_TRACE(run);
  const RunSummary first = job.trained(run, settings);
  const std::string kept = job.output(run) + "/job.yaml";
  const std::string text = read_file(kept);
  // As it is: the run is finished, and its job stays as it was.
  const Ended as_it_is = LockstepProcess({"train", kept}, job.log(run)).wait();
  EXPECT_EQ(as_it_is.code, 0) << as_it_is.err << text;
  EXPECT_EQ(read_file(kept), text);
  // And from its beginning.
  const std::string again = run + "-again";
  const Ended ended =
      LockstepProcess({"train", kept, "--set", "output=" + job.output(again)}, job.log(again)).wait();
  ASSERT_EQ(ended.code, 0) << ended.err << text;
  EXPECT_EQ(job.summary(again).identity_sha256, first.identity_sha256);
  EXPECT_EQ(job.summary(again).weights_sha256, first.weights_sha256);
  EXPECT_EQ(job.summary(again).name, first.name);
  expect_same_evaluations(job.metrics(again), job.metrics(run));
}

TEST(KeptJob, OfEveryTemplateRunsAgain) {
  const std::map<std::string_view, Settings> small = {
      {"encoder", {"data.train.samples=200", "data.eval.samples=20", "train.global_batch=64"}},
      {"fraud", {"data.train.samples=2000", "data.eval.samples=200", "model.rows=100"}},
      {"gpt", {"model.layers=1", "model.dim=16"}},
      {"resnet", {"data.train.samples=64", "data.eval.samples=16", "model.width=4"}}};
  for (const JobTemplate& one : job_templates()) {
    if (!small.contains(one.name)) continue;
    const TrainCase job{std::string(one.text)};
    Settings settings = small.at(one.name);
    settings.insert(settings.end(), {"train.steps=4", "checkpoint.every=2", "train.eval.every=2"});
    expect_runs_again(job, std::string(one.name), settings);
  }
}

constexpr const char* kTableJob = R"(
name: table
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: csv, files: unset, label: y, columns: {ignore: [id]}}, hold_out: 0.1, seed: 3}
train: {steps: 6, global_batch: 16, microbatch: 4, lr: {base: 1e-2}, eval: {every: 33.3%}}
)";

std::string table() {
  std::string csv = "id,a,b,y\n";
  for (int i = 0; i < 300; ++i) csv += fmt::format("n{},{},k{},{}\n", i, i % 17, i * 3 % 29, i % 2);
  return csv;
}

TEST(KeptJob, OfEveryFormatOfTablesRunsAgain) {
  const TrainCase job(kTableJob);
  job.folder().write("tables/csv/t.csv", table());
  for (const char* format : {"csv", "jsonl", "tfrecord", "block", "parquet"}) {
    const std::string folder = job.folder().path("tables/" + std::string(format));
    if (std::string_view(format) != "csv") {
      const Ended made = LockstepProcess({"data", "convert", job.folder().path("tables/csv/t.csv"), "--to",
                                          format, "--out", folder},
                                         job.log("convert"))
                             .wait();
      ASSERT_EQ(made.code, 0) << made.err;
    }
    expect_runs_again(job, format,
                      {"data.train.format=" + std::string(format), "data.train.files=" + folder});
  }
}

TEST(KeptJob, WithEveryKeyOfTheDataSectionRunsAgain) {
  const TrainCase job(kTableJob);
  job.folder().write("a$b.csv", table());
  job.folder().write("c d.csv", table());
  const std::string file = "data.train.files=" + job.folder().path("a$$b.csv");
  expect_runs_again(
      job, "selected",
      {file, "data.hold_out=0", "data.split.column=b", "data.split.eval=0.25", "data.filter=\"a < 15\"",
       "data.subsample.where=\"y == 0\"", "data.subsample.keep=0.5", "data.errors.policy=skip"});
  expect_runs_again(job, "separate",
                    {file, "data.hold_out=0", "data.eval.files=\"" + job.folder().path("c d.csv") + "\"",
                     "data.train.columns.log1p=[a]", "data.train.columns.fill=0.1"});
  expect_runs_again(job, "mixed",
                    {fmt::format("data.train.files=[{}, \"{}\"]", job.folder().path("a$$b.csv"),
                                 job.folder().path("c d.csv")),
                     "data.hold_out=0", "train.eval.every=", "data.train.weights=[0.3, 0.7]",
                     "data.train.weight_changes=[{at: 32, weights: [0.5, 0.5]}]", "data.cache=rows",
                     "data.cache_folder=" + job.folder().path("rows"),
                     "data.train.transforms=[{name: clip, columns: [a], high: 12.5}, {name: cast, columns: "
                     "[b], to: text}]"});
}

TEST(KeptJob, OfTextTokensAndImagesRunsAgain) {
  const TrainCase gpt(R"(
name: tokens
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 256, seq: 16}
data: {train: {format: tokens, files: unset}, hold_out: 0.1, seed: 3}
train: {steps: 4, global_batch: 8, microbatch: 4, lr: {base: 1e-2}}
)");
  std::string text;
  Documents documents(30);
  for (size_t d = 0; d < documents.size(); ++d)
    for (int i = 0; i < 40; ++i)
      documents[d].push_back(static_cast<int32_t>(d + static_cast<size_t>(i)) % 64);
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + i * 7 % 26);
  gpt.folder().write("corpus/c.idx", megatron_index(documents, 8, 2));
  gpt.folder().write("corpus/c.bin", token_bytes<uint16_t>(documents));
  gpt.folder().write("prose/t.txt", text);
  expect_runs_again(
      gpt, "tokens",
      {"data.train.files=" + gpt.folder().path("corpus"), "data.pack=best_fit", "data.documents=separate"});
  expect_runs_again(gpt, "text",
                    {"data.train.format=text", "data.train.files=" + gpt.folder().path("prose")});

  const TrainCase resnet(R"(
name: images
model: {family: resnet, width: 4, image: 32, classes: 3}
data: {train: {format: images, files: unset}, images: {crop: random, area: 0.5, jitter: 0.2}, hold_out: 0.2, seed: 3}
train: {steps: 3, global_batch: 8, microbatch: 4, optimizer: {name: sgd}, lr: {base: 1e-2}}
)");
  std::string archive;
  for (int i = 0; i < 8; ++i)
    for (int kind = 0; kind < 3; ++kind) {
      const std::string name = fmt::format("{}/{}", "abc"[kind], i);
      const std::string bytes = to_png(striped_image(40, 36, kind, i));
      resnet.folder().write("pictures/" + name + ".png", bytes);
      archive += tar_member(name + ".png", bytes) + tar_member(name + ".cls", std::to_string(kind));
    }
  resnet.folder().write("shards/s-0.tar", archive + tar_end());
  expect_runs_again(resnet, "images", {"data.train.files=" + resnet.folder().path("pictures")});
  expect_runs_again(resnet, "tar",
                    {"data.train.format=tar", "data.train.files=" + resnet.folder().path("shards")});
}

TEST(KeptJob, OfWorkersSaysWhatWasAskedFor) {
  const TrainCase job(kGptJob);
  job.trained("auto", {"train.steps=2", "train.lr.warmup=0"});
  EXPECT_NE(job.text("auto", "job.yaml").find("workers: auto"), std::string::npos)
      << job.text("auto", "job.yaml");
  expect_runs_again(job, "two", {"train.steps=2", "train.lr.warmup=0", "strategy.workers=2"});
}

// The trial's case: the job lies where its output goes.
TEST(KeptJob, NeverTakesThePlaceOfTheUsers) {
  const TrainCase job(std::string(kGptJob) + "output: .\n");
  const std::string text = read_file(job.folder().path("job.yaml"));
  const auto train_here = [&](const std::string& file) {
    return ChildProcess({"/bin/sh", "-c",
                         "cd " + job.folder().path() + " && exec " + LOCKSTEP_PROGRAM + " train " + file},
                        job.log("here"))
        .wait();
  };
  const Ended ended = train_here("job.yaml");
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_NE(
      ended.err.find("output . holds job.yaml, which no run has written and this one would overwrite; choose "
                     "another output, for example runs/gpt"),
      std::string::npos)
      << ended.err;
  // Nor where another job is run.
  job.folder().write("other.yaml", text);
  EXPECT_EQ(train_here("other.yaml").code, 2);
  EXPECT_EQ(read_file(job.folder().path("job.yaml")), text);
  // A folder without it is as good as any.
  fs::rename(job.folder().path("job.yaml"), job.folder().path("mine.yaml"));
  const Ended alone = train_here("mine.yaml");
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(read_file(job.folder().path("mine.yaml")), text);
}

}  // namespace
}  // namespace lockstep
