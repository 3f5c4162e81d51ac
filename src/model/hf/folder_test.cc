// Hugging Face folders: what is found in them, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "model/hf/folder_testing.h"
#include "model/hf/weight_index.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using namespace testing;

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

std::string open_refusal(const TestFolder& folder, const HfSourceOptions& options = {}) {
  return refusal([&] { HfSource source(folder.path(), options); });
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::vector<float> values_of(const HfSource& source, const std::string& name) {
  for (const WeightMatch::Taken& taken : source.match().taken) {
    if (taken.name != name) continue;
    const TensorSpec& spec = taken.from->spec();
    const FileMapping mapped = source.files()->map(*taken.from, 0, spec.bytes());
    std::vector<float> values;
    std::vector<std::byte> copy(mapped.bytes().begin(), mapped.bytes().end());
    for (int64_t i = 0; i < spec.shape.numel(); ++i)
      values.push_back(static_cast<float>(read_element(spec.dtype, copy.data(), i)));
    return values;
  }
  return {};
}

TEST(HfFolder, OneFileAndSeveralHoldTheSameModel) {
  const TestFolder one, many;
  write_tiny_folder(one);
  write_tiny_shards(many, 3);
  const HfSource a(one.path(), {}), b(many.path(), {});
  EXPECT_EQ(a.files()->file_count(), 1U);
  EXPECT_EQ(b.files()->file_count(), 3U);
  ASSERT_EQ(a.match().taken.size(), 21U);
  EXPECT_TRUE(a.match().drawn.empty());
  for (const WeightMatch::Taken& taken : a.match().taken)
    EXPECT_EQ(values_of(a, taken.name), values_of(b, taken.name)) << taken.name;
  EXPECT_EQ(values_of(a, "model.norm.weight"), values_of(b, "model.norm.weight"));
}

TEST(HfFolder, TheSingleFileComesBeforeTheIndex) {
  const TestFolder folder;
  write_tiny_shards(folder, 2);
  write_tiny_folder(folder);
  EXPECT_EQ(HfSource(folder.path(), {}).files()->file_count(), 1U);
}

TEST(HfFolder, NamesMayLackThePrefixAndBeOld) {
  const TestFolder folder;
  auto config = tiny_llama_config();
  std::vector<TensorSpec> tensors = tensors_of_config(config);
  for (TensorSpec& tensor : tensors)
    if (tensor.name.starts_with("model.")) tensor.name = tensor.name.substr(6);
  tensors.push_back({"layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {2}});
  folder.write("config.json", config.dump());
  write_tiny_file(folder.path(), "model.safetensors", tensors);
  const HfSource source(folder.path(), {});
  EXPECT_EQ(source.match().taken.size(), 21U);
  EXPECT_TRUE(source.match().unused.empty());
}

TEST(HfFolder, TypesAreThoseOfTheFiles) {
  const TestFolder folder;
  write_tiny_folder(folder, tiny_llama_config(), DType::kBF16);
  const HfSource source(folder.path(), {});
  EXPECT_EQ(source.stored("model.norm.weight"), DType::kBF16);
  EXPECT_EQ(source.stored("nothing"), DType::kF32);
  EXPECT_SAYS(config_with_dtype(source.config(), DType::kBF16), "\"torch_dtype\": \"bfloat16\"");
}

TEST(HfFolder, WithoutWeightsOnlyConfigIsNeeded) {
  const TestFolder folder;
  folder.write("config.json", tiny_llama_config().dump());
  EXPECT_EQ(HfSource(folder.path(), {.weights = false}).files(), nullptr);
  EXPECT_SAYS(open_refusal(folder), "there is no model.safetensors in it");
}

TEST(HfFolder, TiedTensorsAreOneWhereTheyAreEqual) {
  auto config = tiny_llama_config();
  const std::vector<TensorSpec> tensors = tensors_of_config(config);  // with lm_head.weight
  config["tie_word_embeddings"] = true;
  const TestFolder equal, different, head_only;
  const std::vector<float> table = tiny_values({"model.embed_tokens.weight", DType::kF32, {32, 16}});
  equal.write("config.json", config.dump());
  write_tiny_file(equal.path(), "model.safetensors", tensors, {{"lm_head.weight", table}});
  EXPECT_EQ(HfSource(equal.path(), {}).match().taken.size(), 20U);

  different.write("config.json", config.dump());
  write_tiny_file(different.path(), "model.safetensors", tensors);
  const HfSource untied(different.path(), {});
  EXPECT_EQ(untied.match().taken.size(), 21U);
  EXPECT_SAYS(untied.config(), "\"tie_word_embeddings\": false");

  std::vector<TensorSpec> without = tensors;
  std::erase_if(without, [](const TensorSpec& tensor) { return tensor.name == "model.embed_tokens.weight"; });
  head_only.write("config.json", config.dump());
  write_tiny_file(head_only.path(), "model.safetensors", without);
  const HfSource source(head_only.path(), {});
  EXPECT_EQ(values_of(source, "model.embed_tokens.weight"),
            tiny_values({"lm_head.weight", DType::kF32, {32, 16}}));
}

TEST(HfFolder, ANewHeadIsDrawn) {
  const TestFolder folder;
  write_tiny_folder(folder);
  const HfSource source(folder.path(), {.head = HfHead::kSequenceClass, .classes = 3});
  EXPECT_EQ(source.match().drawn, std::vector<std::string>{"score.weight"});
  EXPECT_EQ(source.match().unused, std::vector<std::string>{"lm_head.weight"});
  EXPECT_EQ(source.model().classes, 3);
  EXPECT_SAYS(source.config(), "LlamaForSequenceClassification");
  EXPECT_SAYS(source.config(), "LABEL_2");
}

TEST(HfFolder, LinksMayNotLeaveTheFolder) {
  const TestFolder root, other;
  write_tiny_folder(other);
  fs::create_directories(root.path("model"));
  fs::copy(other.path("config.json"), root.path("model/config.json"));
  fs::create_symlink(other.path("model.safetensors"), root.path("model/model.safetensors"));
  EXPECT_SAYS(refusal([&] { HfSource source(root.path("model"), {}); }), "leads out of its folder");
}

TEST(HfFolder, SnapshotsOfTheHubsCacheLinkIntoItsBlobs) {
  const TestFolder root, other;
  write_tiny_folder(other);
  fs::create_directories(root.path("blobs"));
  fs::create_directories(root.path("snapshots/1a2b"));
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::copy(other.path(name), root.path(std::string("blobs/of-") + name));
    fs::create_symlink(std::string("../../blobs/of-") + name,
                       root.path(std::string("snapshots/1a2b/") + name));
  }
  EXPECT_EQ(HfSource(root.path("snapshots/1a2b"), {}).match().taken.size(), 21U);
}

struct BrokenFolder {
  const char* name;
  std::function<void(const TestFolder&)> breaks;
  const char* says;
};

TEST(HfFolder, BrokenFoldersAreRefusedByName) {
  const auto index = [](const TestFolder& folder, const std::string& file) {
    folder.write("model.safetensors.index.json", R"({"weight_map": {"lm_head.weight": ")" + file + "\"}}");
  };
  const auto config = [](const TestFolder& folder, const char* key, const nlohmann::ordered_json& value) {
    auto changed = tiny_llama_config();
    changed[key] = value;
    folder.write("config.json", changed.dump());
  };
  const std::vector<BrokenFolder> cases = {
      {"shard is missing",
       [](const TestFolder& f) { fs::remove(f.path("model-00002-of-00002.safetensors")); },
       "names model-00002-of-00002.safetensors, which is not in the folder"},
      {"shard is cut",
       [](const TestFolder& f) { fs::resize_file(f.path("model-00001-of-00002.safetensors"), 2000); },
       "model-00001-of-00002.safetensors"},
      {"shard is empty",
       [](const TestFolder& f) { fs::resize_file(f.path("model-00001-of-00002.safetensors"), 0); },
       "too few for a safetensors file"},
      {"index climbs", [&](const TestFolder& f) { index(f, "../model.safetensors"); }, "without a path"},
      {"index is absolute", [&](const TestFolder& f) { index(f, "/etc/passwd"); }, "without a path"},
      {"index is no JSON",
       [](const TestFolder& f) { f.write("model.safetensors.index.json", "{\"weight_map\": "); },
       "it breaks at byte"},
      {"index has no map", [](const TestFolder& f) { f.write("model.safetensors.index.json", "{}"); },
       "has no weight_map"},
      {"index lies",
       [&](const TestFolder& f) {
         f.write("model.safetensors.index.json",
                 R"({"weight_map": {"nobody.weight": "model-00001-of-00002.safetensors"}})");
       },
       "which does not hold it"},
      {"tensor twice",
       [](const TestFolder& f) {
         fs::remove(f.path("model-00002-of-00002.safetensors"));
         fs::copy(f.path("model-00001-of-00002.safetensors"), f.path("model-00002-of-00002.safetensors"));
       },
       "both hold tensor"},
      {"config missing", [](const TestFolder& f) { fs::remove(f.path("config.json")); }, "config.json"},
      {"unknown family", [&](const TestFolder& f) { config(f, "model_type", "mamba"); }, "mamba"},
      {"unknown class",
       [&](const TestFolder& f) { config(f, "architectures", {"LlamaForQuestionAnswering"}); },
       "LlamaForQuestionAnswering"},
      {"more layers", [&](const TestFolder& f) { config(f, "num_hidden_layers", 3); },
       "model.layers.2.input_layernorm.weight is not there"},
      {"fewer layers", [&](const TestFolder& f) { config(f, "num_hidden_layers", 1); },
       "this model has no such tensor"},
      {"other shape", [&](const TestFolder& f) { config(f, "intermediate_size", 32); }, "[24,16]"},
  };
  for (const BrokenFolder& broken : cases) {
    const TestFolder folder;
    write_tiny_shards(folder, 2);
    EXPECT_EQ(open_refusal(folder), "accepted");
    broken.breaks(folder);
    const std::string text = open_refusal(folder);
    EXPECT_NE(text.find(broken.says), std::string::npos) << broken.name << ": " << text;
  }
}

TEST(HfFolder, IntegersAreNoWeights) {
  const TestFolder folder;
  const auto config = tiny_llama_config();
  std::vector<TensorSpec> tensors = tensors_of_config(config);
  tensors[0].dtype = DType::kI32;
  folder.write("config.json", config.dump());
  write_tiny_file(folder.path(), "model.safetensors", tensors);
  EXPECT_SAYS(open_refusal(folder), "weights are f32, bf16 or f16");
}

TEST(HfFolder, PicklesAreRefusedByName) {
  const TestFolder folder;
  folder.write("config.json", tiny_llama_config().dump());
  folder.write("pytorch_model.bin", "PK");
  EXPECT_SAYS(open_refusal(folder), "pytorch_model.bin, which is a pickle");
}

TEST(HfFolder, AnAdapterIsNoModel) {
  const TestFolder folder;
  folder.write("adapter_config.json", "{}");
  EXPECT_SAYS(open_refusal(folder), "train.lora.from");
}

TEST(HfFolder, CompanionsAreReadByteForByte) {
  const TestFolder folder;
  write_tiny_folder(folder);
  folder.write("tokenizer.json", "{\"a\":\r\n1}");
  folder.write("README.md", "no");
  const auto files = HfSource(folder.path(), {}).companions();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].first, "tokenizer.json");
  EXPECT_EQ(files[0].second, "{\"a\":\r\n1}");
}

TEST(HfFolder, AHashOfWeightsNamesTensorsAndValues) {
  const StoredTensor a{{{"a", DType::kF32, {2}}, 0, 8}, 0}, b{{{"b", DType::kF32, {2}}, 8, 16}, 1};
  const StoredTensor long_one{{{"c", DType::kBF16, {kWeightPiece}}, 0, 2 * kWeightPiece}, 0};
  EXPECT_EQ(pieces_of({&long_one, &a}).size(), 3U);
  const std::string both = hash_of_weights(pieces_of({&b, &a}), {"1", "2"});
  EXPECT_EQ(both, hash_of_weights(pieces_of({&a, &b}), {"1", "2"}));
  EXPECT_NE(both, hash_of_weights(pieces_of({&a, &b}), {"2", "1"}));
  EXPECT_NE(hash_of_weights(pieces_of({&a}), {"1"}), hash_of_weights(pieces_of({&b}), {"1"}));
}

TEST(WeightIndexFile, IsReadWithItsMetadata) {
  const WeightIndex index = parse_weight_index(
      R"({"metadata": {"total_size": 8, "note": [1, {"a": null}]}, "weight_map": {"a": "x.safetensors", "b": "y"}})",
      "i");
  EXPECT_EQ(index.files.size(), 2U);
  EXPECT_EQ(index.files.at("a"), "x.safetensors");
}

}  // namespace
}  // namespace lockstep
