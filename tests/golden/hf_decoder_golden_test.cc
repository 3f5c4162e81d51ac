// Models of Hugging Face folders against transformers: logits, loss, every gradient, the losses of 20 AdamW
// steps; and text generated piece by piece over a cache against the same logits. What hf_decoders/ holds
// comes from make_hf_decoder_golden.py beside this file; every file there is a case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "graph/text.h"
#include "model/hf/family.h"
#include "runtime/compile.h"
#include "safetensors/reader.h"
#include "tensor_error.h"
#include "train/step/train_step.h"

namespace lockstep {
namespace {

const std::string kFolder = std::string(LOCKSTEP_GOLDEN) + "/hf_decoders/";

std::vector<std::string> variants() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<double> doubles(std::span<const float> values) { return {values.begin(), values.end()}; }

struct DecoderGolden {
  explicit DecoderGolden(const std::string& name) : reader(kFolder + name + ".safetensors") {
    for (const TensorEntry& entry : reader.tensors()) {
      std::string& data = bytes[entry.tensor.name];
      data.resize(static_cast<size_t>(entry.tensor.bytes()));
      reader.read(entry, std::as_writable_bytes(std::span(data)));
    }
    const auto metadata = [&](const std::string& key) {
      return std::stoll(reader.header().metadata.at(key));
    };
    graph.batch = metadata("batch");
    graph.seq = metadata("seq");
    graph.documents = metadata("documents") != 0;
    graph.padded = bytes.contains("input.keys_visible");
  }

  bool has(const std::string& key) const { return bytes.contains(key); }
  std::span<const float> floats(const std::string& key) const {
    const std::string& raw = bytes.at(key);
    return {reinterpret_cast<const float*>(raw.data()), raw.size() / sizeof(float)};
  }

  SafetensorsReader reader;
  std::map<std::string, std::string> bytes;
  HfGraph graph;
};

// Runs a graph once; inputs by name.
class Forward {
 public:
  Forward(const Graph& graph, Backend& backend) : backend_(backend) {
    PassOptions options;
    options.disabled.emplace_back("autodiff");
    executable_ = compile(graph, backend, options);
  }

  void set(const std::string& name, const void* data, int64_t bytes) {
    buffers_[name] = backend_.allocate(bytes);
    backend_.upload(buffers_[name]->data(), data, bytes);
    executable_->bind(name, buffers_[name]->data());
  }
  template <typename T>
  void set(const std::string& name, const std::vector<T>& values) {
    set(name, values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
  }
  void set_params(const DecoderGolden& golden) {
    for (const auto& [key, data] : golden.bytes)
      if (key.starts_with("param.")) set(key.substr(6), data.data(), static_cast<int64_t>(data.size()));
  }
  void run() { executable_->run(); }
  std::vector<float> output(size_t index) {
    const Graph& graph = executable_->graph();
    const int64_t bytes = graph.type(graph.outputs()[index].value).bytes();
    std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float));
    backend_.download(values.data(), executable_->output(index), bytes);
    return values;
  }

 private:
  Backend& backend_;
  std::unique_ptr<Executable> executable_;
  std::map<std::string, std::unique_ptr<Buffer>> buffers_;
};

// The logits behind the answer of an evaluation graph, as a further output.
void output_logits(Graph& graph) {
  const auto answer = graph.outputs()[2].value;
  const Node& node = graph.nodes()[static_cast<size_t>(graph.producer(answer))];
  ASSERT_EQ(node.op->name, "argmax");
  graph.add_output(node.inputs[0]);
}

class HfDecoders : public ::testing::TestWithParam<std::string> {};
class HfDecodersInBf16 : public HfDecoders {};
class HfDecodersOverACache : public HfDecoders {};

std::unique_ptr<HfModel> model_of(const std::string& name, const std::string& suffix = ".json") {
  return make_hf_model(HfConfig::read(kFolder + name + suffix));
}

TEST_P(HfDecoders, KeysOfBothVersionsGiveOneGraph) {
  const DecoderGolden golden(GetParam());
  EXPECT_EQ(to_text(model_of(GetParam())->build(golden.graph).graph),
            to_text(model_of(GetParam(), ".v4.json")->build(golden.graph).graph));
}

TEST_P(HfDecoders, Logits) {
  DecoderGolden golden(GetParam());
  golden.graph.training = false;
  Model model = model_of(GetParam())->build(golden.graph);
  output_logits(model.graph);
  const auto backend = make_cpu_backend(2);
  Forward forward(model.graph, *backend);
  forward.set_params(golden);
  for (const auto& [key, data] : golden.bytes)
    if (key.starts_with("input.")) forward.set(key.substr(6), data.data(), static_cast<int64_t>(data.size()));
  forward.run();
  EXPECT_EQ(testing::compare(doubles(forward.output(3)), doubles(golden.floats("logits")), 1e-5), "");
}

TEST_P(HfDecoders, LossGradientsAndTwentySteps) {
  const DecoderGolden golden(GetParam());
  const auto backend = make_cpu_backend(2);
  TrainStep train(model_of(GetParam())->build(golden.graph), *backend, {});
  size_t given = 0;
  for (const auto& [key, data] : golden.bytes) {
    if (key.starts_with("input."))
      train.set_input(key.substr(6), data.data(), static_cast<int64_t>(data.size()));
    if (!key.starts_with("param.")) continue;
    const std::span<const float> values = golden.floats(key);
    train.set_param(key.substr(6), {values.begin(), values.end()});
    ++given;
  }
  EXPECT_EQ(given, train.params().size());
  double largest = 0;
  for (const auto& [key, data] : golden.bytes)
    if (key.starts_with("grad."))
      for (const float x : golden.floats(key)) largest = std::max(largest, std::fabs(static_cast<double>(x)));

  const std::span<const float> losses = golden.floats("losses");
  for (size_t step = 0; step < losses.size(); ++step) {
    const StepResult result = train.run(1e-3);
    EXPECT_NEAR(result.loss, losses[step], (step == 0 ? 1e-5 : 1e-4) * std::fabs(losses[step]))
        << "step " << step;
    if (step > 0) continue;
    for (const StateTensor& entry : train.params())
      EXPECT_EQ(testing::compare(doubles(train.grad(entry.name)),
                                 doubles(golden.floats("grad." + entry.name)), 1e-4, 1e-3 * largest),
                "")
          << "gradient of " << entry.name;
  }
}

TEST_P(HfDecodersInBf16, LossStaysWithinRounding) {
  const DecoderGolden golden(GetParam());
  const auto backend = make_cpu_backend(2);
  TrainOptions options;
  options.passes.compute = DType::kBF16;
  TrainStep train(model_of(GetParam())->build(golden.graph), *backend, options);
  for (const auto& [key, data] : golden.bytes) {
    if (key.starts_with("input."))
      train.set_input(key.substr(6), data.data(), static_cast<int64_t>(data.size()));
    if (!key.starts_with("param.")) continue;
    const std::span<const float> values = golden.floats(key);
    train.set_param(key.substr(6), {values.begin(), values.end()});
  }
  EXPECT_NEAR(train.accumulate().loss, golden.floats("loss_bf16")[0], 0.01 * golden.floats("loss_bf16")[0]);
}

// A driver of the graph that generates, as simple as can be: rows of a cache in slots of any order.
class CachedText {
 public:
  CachedText(const HfModel& model, const DecoderGolden& golden) : model_(model), golden_(golden) {}

  // The next `count` tokens of the golden rows, over a cache of `slots`; the logits of the last of them.
  // From slot `first` on lie the tokens read so far.
  std::vector<float> read(int64_t count, int64_t slots, int64_t first, int64_t window) {
    const int64_t batch = golden_.graph.batch, seq = golden_.graph.seq;
    const Model model =
        model_.build({.batch = batch, .seq = count, .training = false, .cache = slots, .length = seq});
    const auto backend = make_cpu_backend(2);
    Forward forward(model.graph, *backend);
    forward.set_params(golden_);
    const auto* tokens = reinterpret_cast<const int32_t*>(golden_.bytes.at("input.tokens").data());
    std::vector<int32_t> now, positions;
    std::vector<uint8_t> visible(static_cast<size_t>(batch * (slots + count)), 0), in_window = visible;
    for (int64_t b = 0; b < batch; ++b) {
      uint8_t* row = visible.data() + b * (slots + count);
      uint8_t* row_window = in_window.data() + b * (slots + count);
      for (int64_t i = 0; i < done_; ++i) {
        row[first + i] = 1;
        row_window[first + i] = count > 1 || i > done_ - window;
      }
      for (int64_t i = 0; i < count; ++i) {
        now.push_back(tokens[b * seq + done_ + i]);
        positions.push_back(static_cast<int32_t>(done_ + i));
        row[slots + i] = row_window[slots + i] = 1;
      }
    }
    forward.set("tokens", now);
    forward.set("positions", positions);
    forward.set("visible", visible);
    if (model.graph.find("visible_window").valid()) forward.set("visible_window", in_window);
    const size_t tensors = model.graph.outputs().size() - 1;
    kept_.resize(tensors);
    for (size_t i = 0; i < tensors; ++i) {
      const std::string name = fmt::format("cache.{}.{}", i / 2, i % 2 == 0 ? "key" : "value");
      const int64_t width = model.graph.type(model.graph.find(name)).shape.numel() / (batch * slots);
      // What lies in slots that nobody sees must not matter.
      std::vector<float> cache(static_cast<size_t>(batch * slots * width), 7.0f);
      for (int64_t b = 0; b < batch && done_ > 0; ++b)
        std::copy_n(kept_[i].data() + b * done_ * width, done_ * width,
                    cache.data() + (b * slots + first) * width);
      forward.set(name, cache);
    }
    forward.run();
    for (size_t i = 0; i < tensors; ++i) append(kept_[i], forward.output(1 + i), count);
    done_ += count;
    return forward.output(0);
  }

 private:
  void append(std::vector<float>& all, const std::vector<float>& more, int64_t count) const {
    const int64_t batch = golden_.graph.batch;
    const int64_t width = static_cast<int64_t>(more.size()) / (batch * count);
    std::vector<float> joined;
    for (int64_t b = 0; b < batch; ++b) {
      joined.insert(joined.end(), all.begin() + b * done_ * width, all.begin() + (b + 1) * done_ * width);
      joined.insert(joined.end(), more.begin() + b * count * width, more.begin() + (b + 1) * count * width);
    }
    all = std::move(joined);
  }

  const HfModel& model_;
  const DecoderGolden& golden_;
  int64_t done_ = 0;
  std::vector<std::vector<float>> kept_;
};

TEST_P(HfDecodersOverACache, PiecesGiveTheSameLogits) {
  const DecoderGolden golden(GetParam());
  const auto model = model_of(GetParam());
  const HfConfig config = HfConfig::read(kFolder + GetParam() + ".json");
  const int64_t window = config.object("text_config").value_or(config).integer("sliding_window", 1000);
  CachedText text(*model, golden);
  const int64_t vocab = model->vocab, seq = golden.graph.seq;
  const auto expect = [&](const std::vector<float>& logits, int64_t position) {
    std::vector<float> want;
    for (int64_t b = 0; b < golden.graph.batch; ++b) {
      const auto row = golden.floats("logits").subspan(static_cast<size_t>((b * seq + position) * vocab),
                                                       static_cast<size_t>(vocab));
      want.insert(want.end(), row.begin(), row.end());
    }
    EXPECT_EQ(testing::compare(doubles(logits), doubles(want), 1e-5), "") << "position " << position;
  };
  expect(text.read(5, 1, 0, window), 4);   // a prompt at once, over a cache that holds nothing
  expect(text.read(3, 7, 2, window), 7);   // a piece, right behind what the cache holds
  expect(text.read(1, 20, 3, window), 8);  // single tokens, wherever the others lie
  expect(text.read(1, 9, 0, window), 9);
}

std::vector<std::string> variants_that(bool (*holds)(const DecoderGolden& golden, const HfModel& model)) {
  std::vector<std::string> names;
  for (const std::string& name : variants())
    if (holds(DecoderGolden(name), *model_of(name))) names.push_back(name);
  return names;
}

std::string name_of_case(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(All, HfDecoders, ::testing::ValuesIn(variants()), name_of_case);
INSTANTIATE_TEST_SUITE_P(All, HfDecodersInBf16,
                         ::testing::ValuesIn(variants_that([](const DecoderGolden& golden, const HfModel&) {
                           return golden.has("loss_bf16");
                         })),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(All, HfDecodersOverACache,
                         ::testing::ValuesIn(variants_that([](const DecoderGolden& golden,
                                                              const HfModel& model) {
                           return model.head == HfHead::kCausalLm && !golden.graph.documents;
                         })),
                         name_of_case);

}  // namespace
}  // namespace lockstep
