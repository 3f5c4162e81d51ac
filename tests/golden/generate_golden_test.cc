// Tokens that transformers generates (make_generate_golden.py), and what holds of any of its models: reading
// a token through the cache gives what reading the whole text gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/does_not_fit.h"
#include "base/test_folder.h"
#include "model/hf/source.h"
#include "safetensors/writer.h"
#include "tokenizer/tokenizer.h"
#include "use/generate.h"
#include "use/open_token_text.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

uint64_t fnv(std::string_view text) {
  uint64_t h = 0xCBF29CE484222325;
  for (const char byte : text) h = (h ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  return h;
}

float uniform(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) * 0x1p-24f - 0.5f;
}

// `values` of make_generate_golden.py.
std::vector<float> weights_of(const TensorSpec& tensor, uint64_t salt, bool gemma) {
  const std::string& name = tensor.name;
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  std::vector<float> values(static_cast<size_t>(tensor.shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    const float u = uniform(fnv(name) + salt, i);
    if (name.ends_with(".bias"))
      values[i] = u * 0.25f;
    else if (tensor.shape.rank() == 1)
      values[i] = u * 0.5f + (gemma ? 0.0f : 1.0f);
    else
      values[i] = u * (has("embed") || has("wte") || has("lm_head") ? 1.0f : 0.5f);
  }
  return values;
}

// A folder as Hugging Face's tools write it, gone when this is.
class TinyFolder {
 public:
  explicit TinyFolder(const Json& json) {
    folder_.write("config.json", json.at("config").dump());
    const auto model = make_hf_model(HfConfig::read(folder_.path("config.json")));
    SafetensorsWriter file(folder_.path(), "model.safetensors", parameter_specs(model->build({})),
                           {{"format", "pt"}});
    for (const TensorEntry& entry : file.tensors()) {
      const std::vector<float> values =
          weights_of(entry.tensor, json.at("salt").get<uint64_t>(), model->model_type.starts_with("gemma"));
      file.append(std::as_bytes(std::span(values)));
    }
    file.finish();
  }
  std::string path() const { return folder_.path(); }

 private:
  TestFolder folder_;
};

const std::vector<Json>& cases() {
  static const std::vector<Json> all = [] {
    std::ifstream file(LOCKSTEP_GOLDEN "/generate.json");
    return Json::parse(file).get<std::vector<Json>>();
  }();
  return all;
}

const Json& case_named(const std::string& name) {
  for (const Json& json : cases())
    if (json.at("name") == name) return json;
  throw InternalError("no case {}", name);
}

// A model with its decoder, for texts of `capacity` tokens.
struct Session {
  Session(const std::string& path, int64_t prompt, int64_t capacity, int threads = 2,
          DType precision = DType::kF32)
      : model(GeneratingModel::open(path, precision)),
        backend(make_cpu_backend(threads)),
        decoder(model, *backend, prompt, capacity, 0) {}

  GeneratingModel model;
  std::unique_ptr<Backend> backend;
  CachedDecoder decoder;
};

std::vector<int32_t> ids_of(const Json& json, const char* key) {
  return json.at(key).get<std::vector<int32_t>>();
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
  return most;
}

TEST(GenerateGolden, TokensAreThoseOfTransformers) {
  for (const Json& json : cases()) {
    SCOPED_TRACE(json.at("name").get<std::string>());
    const TinyFolder folder(json);
    const std::vector<int32_t> prompt = ids_of(json, "prompt"), tokens = ids_of(json, "tokens");
    const auto count = static_cast<int64_t>(tokens.size());
    Session session(folder.path(), std::ssize(prompt), std::ssize(prompt) + count);
    const auto text = make_id_text(session.model.family().vocab);
    GenerateOptions options{.max_tokens = count};
    options.sampling.repetition_penalty = json.at("penalty").get<double>();
    EXPECT_EQ(generate(session.decoder, prompt, *text, options).tokens, tokens);
  }
}

TEST(GenerateGolden, ATokenReadThroughTheCacheGivesWhatTheWholeTextGives) {
  for (const Json& json : cases()) {
    SCOPED_TRACE(json.at("name").get<std::string>());
    const TinyFolder folder(json);
    std::vector<int32_t> text = ids_of(json, "prompt");
    const std::vector<int32_t> tokens = ids_of(json, "tokens");
    const int64_t capacity = std::ssize(text) + std::ssize(tokens);
    Session cached(folder.path(), std::ssize(text), capacity), whole(folder.path(), capacity, capacity);
    cached.decoder.read(text);
    for (const int32_t token : tokens) {
      text.push_back(token);
      EXPECT_LE(largest_difference(cached.decoder.append(token), whole.decoder.read(text)), 1e-5);
    }
  }
}

// The rotation of scalings that depend on the length changes on the way: what is cached is read again.
TEST(GenerateGolden, ALengthThatChangesTheAnglesReadsTheTextAgain) {
  for (const Json& scaling : {Json{{"rope_type", "dynamic"}, {"rope_theta", 10000.0}, {"factor", 2.0}},
                              Json{{"rope_type", "longrope"},
                                   {"rope_theta", 10000.0},
                                   {"original_max_position_embeddings", 8},
                                   {"factor", 2.0},
                                   {"short_factor", {1, 1.5, 2, 3}},
                                   {"long_factor", {2, 4, 5, 7}}}}) {
    SCOPED_TRACE(scaling.at("rope_type").get<std::string>());
    Json json = case_named("llama");
    json["config"]["rope_parameters"] = scaling;
    json["config"]["max_position_embeddings"] = 8;
    const TinyFolder folder(json);
    std::vector<int32_t> text = ids_of(json, "prompt");
    Session cached(folder.path(), std::ssize(text), 16);
    cached.decoder.read(text);
    for (const int32_t token : {3, 9, 27, 81, 50, 53, 62, 8}) {
      text.push_back(token);
      // A cache of another size, which never reached further than this text.
      Session whole(folder.path(), std::ssize(text), std::ssize(text), 1);
      EXPECT_LE(largest_difference(cached.decoder.append(token), whole.decoder.read(text)), 1e-5)
          << text.size();
    }
  }
}

TEST(GenerateGolden, DrawnTokensAreTheSameForAnyNumberOfThreads) {
  const Json& json = case_named("gemma2");
  const TinyFolder folder(json);
  const std::vector<int32_t> prompt = ids_of(json, "prompt");
  std::vector<std::vector<int32_t>> texts;
  for (const int threads : {1, 2, 3}) {
    Session session(folder.path(), std::ssize(prompt), 60, threads);
    const auto text = make_id_text(97);
    GenerateOptions options{.max_tokens = 40};
    options.sampling = {.greedy = false, .temperature = 0.9, .top_k = 20, .top_p = 0.95, .seed = 3};
    texts.push_back(generate(session.decoder, prompt, *text, options).tokens);
  }
  EXPECT_EQ(texts[0].size(), 40u);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
}

TEST(GenerateGolden, Bf16IsCloseToF32) {
  for (const char* name : {"llama", "gpt2", "gemma3_text", "mistral, window crossed"}) {
    SCOPED_TRACE(name);
    const Json& json = case_named(name);
    const TinyFolder folder(json);
    const std::vector<int32_t> prompt = ids_of(json, "prompt"), tokens = ids_of(json, "tokens");
    Session wide(folder.path(), std::ssize(prompt), 60),
        narrow(folder.path(), std::ssize(prompt), 60, 2, DType::kBF16);
    EXPECT_LT(narrow.model.weight_bytes(), wide.model.weight_bytes() * 6 / 10);
    EXPECT_EQ(2 * narrow.decoder.cache_bytes(), wide.decoder.cache_bytes());
    wide.decoder.read(prompt);
    narrow.decoder.read(prompt);
    for (const int32_t token : tokens) {
      const auto exact = wide.decoder.append(token);
      const double range = *std::ranges::max_element(exact) - *std::ranges::min_element(exact);
      EXPECT_LE(largest_difference(exact, narrow.decoder.append(token)), 0.03 * range);
    }
  }
}

TEST(GenerateGolden, WhatDoesNotFitIsRefusedBeforeWeightsAreRead) {
  const TinyFolder folder(case_named("llama"));
  GeneratingModel model = GeneratingModel::open(folder.path(), {});
  const auto backend = make_cpu_backend(1);
  EXPECT_THROW(CachedDecoder(model, *backend, 4, 100, 1000), DoesNotFit);
}

TEST(GenerateGolden, LearnedPositionsEnd) {
  const TinyFolder folder(case_named("gpt2"));
  EXPECT_NO_THROW(Session(folder.path(), 4, 128));
  EXPECT_THROW(Session(folder.path(), 4, 129), UserError);
}

TEST(GenerateGolden, TextsEndAtTokensAndWords) {
  const Json& json = case_named("llama");
  const TinyFolder folder(json);
  const std::vector<int32_t> prompt = ids_of(json, "prompt"), tokens = ids_of(json, "tokens");
  Session session(folder.path(), std::ssize(prompt), 60);
  const auto text = make_id_text(97);
  GenerateOptions options{.max_tokens = 30, .end_tokens = {tokens[5]}};
  Generated result = generate(session.decoder, prompt, *text, options);
  EXPECT_EQ(result.ended, Ended::kEndToken);
  EXPECT_EQ(result.tokens.back(), tokens[5]);
  options.end_tokens.clear();
  options.stop = {fmt::format("{} {}", tokens[3], tokens[4])};
  result = generate(session.decoder, prompt, *text, options);
  EXPECT_EQ(result.ended, Ended::kStop);
  EXPECT_EQ(result.text.find(options.stop[0]), std::string::npos);
  EXPECT_LE(result.tokens.size(), 5u);
}

// A folder with the tokenizer of `name`, whose tokens the model has all of.
Json with_tokenizer(const std::string& name, int64_t& vocab) {
  const auto tokenizer = Tokenizer::open(LOCKSTEP_GOLDEN "/tokenizer/" + name + ".json");
  vocab = tokenizer->vocab_size();
  Json json = case_named("llama");
  json["config"]["vocab_size"] = vocab;
  return json;
}

TEST(GenerateGolden, WhatIsShownIsWhatTheTokensDecodeTo) {
  for (const char* name : {"gpt2", "llama2", "llama3"}) {
    SCOPED_TRACE(name);
    int64_t vocab = 0;
    const TinyFolder folder(with_tokenizer(name, vocab));
    std::filesystem::copy_file(std::string(LOCKSTEP_GOLDEN "/tokenizer/") + name + ".json",
                               folder.path() + "/tokenizer.json");
    const auto tokenizer = Tokenizer::open(folder.path());
    GeneratingModel model = GeneratingModel::open(folder.path(), {});
    const auto text = open_token_text(model, "", false);
    const std::vector<int32_t> prompt = text->encode("Grüße, 世界 and more");
    EXPECT_EQ(prompt, tokenizer->encode("Grüße, 世界 and more", true));
    const auto backend = make_cpu_backend(1);
    CachedDecoder decoder(model, *backend, std::ssize(prompt), 200, 0);
    GenerateOptions options{.max_tokens = 60};
    options.sampling = {.greedy = false, .temperature = 3, .seed = 5};  // anything, half characters too
    std::string shown;
    options.show = [&](std::string_view part) { shown += part; };
    const Generated result = generate(decoder, prompt, *text, options);
    EXPECT_EQ(result.text, shown);
    // A decoder that drops what stands before the first word does so once, at the beginning of the text.
    std::vector<int32_t> whole = prompt;
    whole.insert(whole.end(), result.tokens.begin(), result.tokens.end());
    const std::string all = tokenizer->decode(whole, true);
    const std::string alone = tokenizer->decode(result.tokens, true);
    EXPECT_TRUE(shown == alone || all.ends_with(shown)) << shown << "\n" << alone;
  }
}

// The program as a process: its standard output.
std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

TEST(GenerateGolden, AConversationIsTheSameOnAnyNumberOfThreads) {
  int64_t vocab = 0;
  const TinyFolder folder(with_tokenizer("gpt2", vocab));
  std::filesystem::copy_file(LOCKSTEP_GOLDEN "/tokenizer/gpt2.json", folder.path() + "/tokenizer.json");
  const auto talk = [&](const std::string& lines, int threads, int seed) {
    return output_of(
        fmt::format("printf '{}' | {} chat {} --template chatml --system Short --max-tokens 6 --quiet "
                    "--temperature 2 --context 256 --seed {} --threads {}",
                    lines, LOCKSTEP_PROGRAM, folder.path(), seed, threads));
  };
  const std::string once = talk("hello\\nagain\\n", 1, 4);
  EXPECT_GT(once.size(), 4u);
  EXPECT_EQ(talk("hello\\nagain\\n", 2, 4), once);
  EXPECT_NE(talk("hello\\nagain\\n", 1, 5), once);
  // The second answer depends on what was said before, the first on the first line alone.
  EXPECT_TRUE(once.starts_with(talk("hello\\n", 1, 4)));
}

}  // namespace
}  // namespace lockstep
