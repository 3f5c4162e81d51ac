// Exported models against onnxruntime, without it: the golden files hold what it answered to the very graphs
// that are exported here (their bytes are compared by hash), and this program must answer the same.
//
// make_onnx_golden.py beside this file writes them, from what this test leaves in the folder that
// LOCKSTEP_WRITE_ONNX names.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/test_folder.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/hf/family.h"
#include "model/resnet.h"
#include "model/tabular.h"
#include "onnx/export_graph.h"
#include "onnx/forward.h"
#include "onnx/onnx_file.h"
#include "onnx/onnx_parse_testing.h"
#include "runtime/compile.h"
#include "safetensors/reader.h"

namespace lockstep {
namespace {

constexpr uint64_t kSeed = 11;

// As a model begins, but with every bias, norm and statistic off its usual 0 or 1, which would hide mistakes.
std::vector<float> weight_of(const Model& model, const std::string& name, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  ParamInit init{name, ParamInit::Kind::kNormal, 0, 0.1};
  for (const ParamInit& each : model.params)
    if (each.name == name && each.kind != ParamInit::Kind::kConstant) init = each;
  init_param(init, kSeed, 0, values);
  for (const ParamInit& each : model.params)
    if (each.name == name && each.kind == ParamInit::Kind::kConstant)
      for (float& value : values) value += static_cast<float>(each.a);
  if (name.ends_with("running_var"))
    for (float& value : values) value = 1 + std::fabs(value);
  return values;
}

std::string written(const BuildEvaluation& build, const std::string& path) {
  const Model model = build(2);
  write_onnx(onnx_of(build), {.path = path},
             [&](const OnnxWeight& weight, int64_t first, std::span<std::byte> into) {
               const int64_t count = model.graph.type(model.graph.find(weight.name)).shape.numel();
               const std::vector<float> values = weight_of(model, weight.name, count);
               std::memcpy(into.data(), reinterpret_cast<const std::byte*>(values.data()) + first,
                           into.size());
             });
  const std::string file = read_file(path);  // the fields point into it
  for (const testing::ProtoField& field : testing::proto_fields(file))
    if (field.number == 7) return sha256(field.bytes);  // the graph: the rest has the version
  return "";
}

std::vector<std::byte> bytes_of(const SafetensorsReader& file, const std::string& name, const Type& type) {
  const TensorEntry& entry = file.at(name);
  std::vector<std::byte> stored(static_cast<size_t>(entry.tensor.bytes())),
      values(static_cast<size_t>(type.bytes()));
  file.read(entry, stored);
  LOCKSTEP_CHECK(entry.tensor.shape == type.shape, "{} is {}", name, to_string(entry.tensor.shape));
  for (int64_t i = 0; i < type.shape.numel(); ++i)
    write_element(type.dtype, values.data(), i, read_element(entry.tensor.dtype, stored.data(), i));
  return values;
}

void check(const std::string& name, const BuildEvaluation& build) {
  const TestFolder folder;
  const char* const keep = std::getenv("LOCKSTEP_WRITE_ONNX");
  const std::string path = keep != nullptr ? fmt::format("{}/{}.onnx", keep, name) : folder.path("m.onnx");
  const std::string hash = written(build, path);
  if (keep != nullptr) GTEST_SKIP() << "wrote " << path;
  const SafetensorsReader golden(fmt::format("{}/onnx/{}.safetensors", LOCKSTEP_GOLDEN, name));
  EXPECT_EQ(golden.header().metadata.at("graph_sha256"), hash)
      << "another graph is exported than the one that onnxruntime was asked: run make_onnx_golden.py";

  const Model model = build(golden.at("logits").tensor.shape[0]);
  const Graph forward = forward_graph(model);
  const auto backend = make_cpu_backend(2);
  PassOptions passes;
  passes.disabled.emplace_back("autodiff");
  const auto executable = compile(forward, *backend, passes);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (const GraphInput& input : executable->graph().inputs()) {
    const std::string& input_name = executable->graph().name(input.value);
    const Type& type = executable->graph().type(input.value);
    buffers.push_back(backend->allocate(type.bytes()));
    if (input.role == Role::kInput)
      backend->upload(buffers.back()->data(), bytes_of(golden, input_name, type).data(), type.bytes());
    else
      backend->upload(buffers.back()->data(), weight_of(model, input_name, type.shape.numel()).data(),
                      type.bytes());
    executable->bind(input_name, buffers.back()->data());
  }
  executable->run();
  for (size_t i = 0; i < forward.outputs().size(); ++i) {
    const Type& type = forward.type(forward.outputs()[i].value);
    const std::string& output = forward.name(forward.outputs()[i].value);
    std::vector<std::byte> ours(static_cast<size_t>(type.bytes()));
    backend->download(ours.data(), executable->output(i), type.bytes());
    const std::vector<std::byte> theirs = bytes_of(golden, output, type);
    for (int64_t at = 0; at < type.shape.numel(); ++at) {
      const double expected = read_element(type.dtype, theirs.data(), at);
      ASSERT_NEAR(read_element(type.dtype, ours.data(), at), expected,
                  1e-5 * std::max(1.0, std::fabs(expected)))
          << output << " " << at;
    }
  }
}

TEST(OnnxGolden, Gpt) {
  check("gpt", [](int64_t batch) {
    return build_gpt(
        {.layers = 2, .dim = 24, .heads = 3, .vocab = 50, .batch = batch, .seq = 17, .training = false});
  });
}

TEST(OnnxGolden, Encoder) {
  check("encoder", [](int64_t batch) {
    return build_encoder({.layers = 2,
                          .dim = 24,
                          .heads = 3,
                          .hidden = 96,
                          .vocab = 40,
                          .classes = 3,
                          .batch = batch,
                          .seq = 11,
                          .padded = true,
                          .training = false});
  });
}

TEST(OnnxGolden, Tabular) {
  check("tabular", [](int64_t batch) {
    return build_tabular({.tables = 3,
                          .rows = 11,
                          .dim = 8,
                          .dense = 5,
                          .bottom = {16, 12},
                          .top = {16, 12},
                          .batch = batch,
                          .training = false});
  });
}

TEST(OnnxGolden, Resnet) {
  check("resnet", [](int64_t batch) {
    return build_resnet(
        {.depth = 18, .width = 4, .image = 32, .classes = 7, .batch = batch, .training = false});
  });
}

// Encoders of Hugging Face folders, by the text of their config.json.
BuildEvaluation folder_model(const std::string& keys, const HfGraph& graph) {
  return [keys, graph](int64_t batch) {
    HfGraph settings = graph;
    settings.batch = batch;
    settings.training = false;
    return make_hf_model(HfConfig::parse("{" + keys + "}", "config.json"))->build(settings);
  };
}

TEST(OnnxGolden, HfBert) {
  check("hf_bert", folder_model(R"("model_type": "bert", "architectures": ["BertForSequenceClassification"],
          "vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
          "intermediate_size": 48, "max_position_embeddings": 16)",
                                {.seq = 11, .padded = true, .segments = true}));
}

TEST(OnnxGolden, HfRoberta) {
  check("hf_roberta", folder_model(R"("model_type": "roberta", "architectures": ["RobertaForMaskedLM"],
          "vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
          "intermediate_size": 48, "max_position_embeddings": 16, "type_vocab_size": 1)",
                                   {.seq = 11, .padded = true}));
}

TEST(OnnxGolden, HfDistilBert) {
  check("hf_distilbert",
        folder_model(R"("model_type": "distilbert", "architectures": ["DistilBertForTokenClassification"],
          "vocab_size": 40, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 48,
          "max_position_embeddings": 16)",
                     {.seq = 11, .padded = true}));
}

TEST(OnnxGolden, HfVit) {
  check("hf_vit", folder_model(R"("model_type": "vit", "architectures": ["ViTForImageClassification"],
          "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48,
          "image_size": 16, "patch_size": 4, "hidden_act": "gelu_new")",
                               {}));
}

}  // namespace
}  // namespace lockstep
