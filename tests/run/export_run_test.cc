// lockstep export: what a trained run gives to other programs, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "onnx/onnx_run_testing.h"
#include "run/train_case.h"
#include "safetensors/reader.h"

namespace lockstep {
namespace {

using testing::OnnxRunner;
using testing::parse_onnx;
using testing::ParsedOnnx;

class ExportCase : public TrainCase {
 public:
  using TrainCase::TrainCase;

  Ended exports(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "export");
    return LockstepProcess(arguments, folder().path("export-log")).wait();
  }
  // The run's model as NAME.onnx with four rows of drawn inputs beside it.
  ParsedOnnx onnx(const std::string& run, const std::string& name) const {
    const Ended ended =
        exports({output(run), "--to", "onnx", "--out", path(name + ".onnx"), "--sample", "4"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return parse_onnx(read_file(path(name + ".onnx")));
  }
  std::string path(const std::string& name) const { return folder().path(name); }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(read_file(path(name))); }
};

RefTensor tensor_of(const SafetensorsReader& file, const std::string& name) {
  const TensorEntry& entry = file.at(name);
  std::vector<std::byte> bytes(static_cast<size_t>(entry.tensor.bytes()));
  file.read(entry, bytes);
  const bool whole = !is_floating(entry.tensor.dtype);
  RefTensor tensor({whole ? DType::kI32 : DType::kF32, entry.tensor.shape});
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor[i] = read_element(entry.tensor.dtype, bytes.data(), i);
  return tensor;
}

// The exported model, run by the definitions of ONNX's ops, against what this program answers.
void expect_sample(const ParsedOnnx& model, const std::string& sample) {
  const SafetensorsReader file(sample);
  RefTensors inputs;
  for (const auto& port : model.inputs) inputs[port.name] = tensor_of(file, port.name);
  const std::vector<RefTensor> found = OnnxRunner(model, inputs).run();
  for (size_t i = 0; i < found.size(); ++i) {
    const RefTensor expected = tensor_of(file, model.outputs[i].name);
    ASSERT_EQ(found[i].shape(), expected.shape()) << model.outputs[i].name;
    for (int64_t at = 0; at < expected.numel(); ++at)
      ASSERT_NEAR(found[i][at], expected[at], 1e-5 * (1 + std::fabs(expected[at])))
          << model.outputs[i].name << " " << at;
  }
}

TEST(Export, EveryFamilyGivesOursAnswers) {
  const std::vector<std::pair<const char*, const char*>> jobs = {
      {"gpt", kGptJob}, {"tabular", kTabularJob}, {"encoder", kEncoderJob}, {"resnet", kResnetJob}};
  for (const auto& [name, text] : jobs) {
    SCOPED_TRACE(name);
    const ExportCase job(text);
    job.trained("run", {"train.steps=4", "train.lr.warmup=1", "train.eval.every="});
    const ParsedOnnx model = job.onnx("run", name);
    expect_sample(model, job.path(std::string(name) + ".sample.safetensors"));
    EXPECT_EQ(model.metadata.at("family"), name);
    EXPECT_EQ(model.metadata.at("step"), "4");
    EXPECT_EQ(model.metadata.at("identity_sha256"), job.summary("run").identity_sha256);
    const nlohmann::json described = job.json(std::string(name) + ".inputs.json");
    EXPECT_EQ(described["inputs"].size(), model.inputs.size());
    for (const auto& port : described["inputs"])
      EXPECT_FALSE(port["meaning"].get<std::string>().empty()) << port;
    EXPECT_EQ(described["model"]["family"], name);
  }
}

TEST(Export, TablesSayHowRecordsBecomeInputs) {
  const ExportCase job(R"(
name: tx
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: csv, label: fraud}}
train: {steps: 3, global_batch: 8, microbatch: 4, lr: {base: 1e-2}}
)");
  std::string csv = "amount,age of card,country,fraud\n";
  for (int i = 0; i < 40; ++i)
    csv += fmt::format("{},{},{},{}\n", 1 << i % 20, i % 7 == 3 ? "" : std::to_string(20 + i % 30),
                       i % 3 == 0 ? "DE" : "FR", i % 4 == 0 ? 1 : 0);
  job.folder().write("tx.csv", csv);
  job.trained("run", {"data.train.files=" + job.path("tx.csv")});
  // A model is used where its data is not.
  std::filesystem::remove(job.path("tx.csv"));
  const ParsedOnnx model = job.onnx("run", "tx");
  expect_sample(model, job.path("tx.sample.safetensors"));
  const nlohmann::json encoding = job.json("tx.inputs.json")["encoding"];
  ASSERT_EQ(encoding["dense"].size(), 3u) << encoding.dump(1);
  EXPECT_EQ(encoding["dense"][0]["column"], "amount");
  EXPECT_TRUE(encoding["dense"][0]["log1p"].get<bool>());
  EXPECT_GT(encoding["dense"][0]["deviation"].get<double>(), 0);
  EXPECT_EQ(encoding["dense"][1]["column"], "age of card");
  EXPECT_EQ(encoding["dense"][2],
            (nlohmann::json{{"index", 2}, {"column", "age of card"}, {"missing", true}}));
  EXPECT_EQ(encoding["ids"], nlohmann::json::array({{{"index", 0}, {"column", "country"}, {"buckets", 50}}}));
  EXPECT_EQ(encoding["label"], "fraud");
}

TEST(Export, TakesTheMovingAverageAndTheCheckpointThatIsNamed) {
  const ExportCase job(kTabularJob);
  job.trained("run", {"train.steps=9", "checkpoint.keep=0"});
  ASSERT_EQ(job.exports({job.output("run"), "--to", "safetensors", "--out", job.path("m.safetensors")}).code,
            0);
  const SafetensorsReader exported(job.path("m.safetensors"));
  const SafetensorsReader averages(job.output("run") + "/checkpoint-9/average.safetensors");
  const SafetensorsReader weights(job.output("run") + "/checkpoint-9/model.safetensors");
  ASSERT_EQ(exported.tensors().size(), weights.tensors().size());
  const RefTensor found = tensor_of(exported, "top.0.weight");
  EXPECT_EQ(found.data, tensor_of(averages, "average.top.0.weight").data);
  EXPECT_NE(found.data, tensor_of(weights, "top.0.weight").data);
  const nlohmann::json config = job.json("m.config.json");
  EXPECT_EQ(config["step"], 9);
  EXPECT_EQ(config["model"]["rows"], 50);
  EXPECT_EQ(config["model"]["top"], nlohmann::json::array({8}));
  EXPECT_TRUE(config["moving_averages"].get<bool>());
  EXPECT_EQ(config["identity_sha256"], job.summary("run").identity_sha256);
  const Ended older = job.exports(
      {job.output("run") + "/checkpoint-6/", "--to", "safetensors", "--out", job.path("six.safetensors")});
  ASSERT_EQ(older.code, 0) << older.err;
  EXPECT_EQ(job.json("six.config.json")["step"], 6);
}

TEST(Export, ReplacesNothingUnasked) {
  const ExportCase job(kGptJob);
  job.trained("run", {"train.steps=2", "train.lr.warmup=1"});
  const std::vector<std::string> arguments = {job.output("run"), "--to", "onnx", "--out", job.path("m.onnx")};
  job.folder().write("m.inputs.json", "mine");
  const Ended refused = job.exports(arguments);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            fmt::format("lockstep: {} is there already; write --overwrite to replace it, or choose "
                        "another name\n",
                        job.path("m.inputs.json")));
  EXPECT_EQ(read_file(job.path("m.inputs.json")), "mine");
  EXPECT_FALSE(std::filesystem::exists(job.path("m.onnx")));
  for (const auto& entry : std::filesystem::directory_iterator(job.path("")))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  std::vector<std::string> bold = arguments;
  bold.emplace_back("--overwrite");
  EXPECT_EQ(job.exports(bold).code, 0);
  EXPECT_NE(read_file(job.path("m.inputs.json")), "mine");
  EXPECT_EQ(job.exports(bold).code, 0);
}

TEST(Export, KeepsWeightsApartWhereAsked) {
  const ExportCase job(kGptJob);
  job.trained("run", {"train.steps=2", "train.lr.warmup=1"});
  const Ended ended =
      job.exports({job.output("run"), "--to", "onnx", "--out", job.path("m.onnx"), "--external-data"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const ParsedOnnx model = parse_onnx(read_file(job.path("m.onnx")));
  const auto& place = model.tensors.at("wte.weight").external;
  EXPECT_EQ(place.at("location"), "m.onnx.data") << "beside the model, wherever both are moved";
  const SafetensorsReader weights(job.output("run") + "/checkpoint-2/model.safetensors");
  const TensorEntry& entry = weights.at("wte.weight");
  std::string expected(static_cast<size_t>(entry.tensor.bytes()), '\0');
  weights.read(entry, std::as_writable_bytes(std::span(expected)));
  EXPECT_TRUE(read_file(job.path("m.onnx.data")).substr(std::stoul(place.at("offset")), expected.size()) ==
              expected);
  const Ended refused = job.exports(
      {job.output("run"), "--to", "safetensors", "--out", job.path("m.safetensors"), "--external-data"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "lockstep: --external-data is for --to onnx; a safetensors file holds its weights itself\n");
}

TEST(Export, SaysWhatIsNoTrainedModel) {
  const ExportCase job(kGptJob);
  const auto error = [&](const std::string& run) {
    const Ended ended = job.exports({run, "--to", "onnx", "--out", job.path("m.onnx")});
    EXPECT_EQ(ended.code, 2) << ended.err;
    return ended.err;
  };
  EXPECT_EQ(
      error(job.path("nowhere")),
      fmt::format(
          "lockstep: {}: there is no such folder; name the output of a run, or one of its checkpoints\n",
          job.path("nowhere")));
  std::filesystem::create_directories(job.path("empty"));
  EXPECT_NE(error(job.path("empty")).find("there is no complete checkpoint in it"), std::string::npos);
  job.trained("run", {"train.steps=2", "train.lr.warmup=1"});
  std::string bytes = read_file(job.output("run") + "/checkpoint-2/model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(job.output("run") + "/checkpoint-2/model.safetensors", bytes);
  EXPECT_NE(error(job.output("run")).find("was changed after it was written in tensor"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
