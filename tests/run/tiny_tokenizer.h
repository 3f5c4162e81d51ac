// A tokenizer.json for tests: byte-level pairs of the printable characters, a few merges, and special tokens.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::testing {

inline constexpr int64_t kTinyVocabulary = 112;

// `frame`: texts are put between <s> and </s>.
inline std::string tiny_tokenizer(bool frame = false) {
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  const auto add = [&](const std::string& token) { vocabulary[token] = vocabulary.size(); };
  for (char c = '!'; c <= '~'; ++c) add(std::string(1, c));
  add("\u0120");  // a space
  add("\u010a");  // a new line
  for (const char* merged : {"th", "the", "\u0120a", "an"}) add(merged);
  nlohmann::ordered_json added = nlohmann::ordered_json::array();
  for (const char* token : {"<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>"}) {
    added.push_back({{"id", vocabulary.size() + added.size()},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const auto special = [](const char* token) {
    return nlohmann::ordered_json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  };
  const auto sequence = [](const char* which) {
    return nlohmann::ordered_json{{"Sequence", {{"id", which}, {"type_id", 0}}}};
  };
  const auto ids = [&](const char* token, size_t at) {
    return nlohmann::ordered_json{{"id", token}, {"ids", {added[at]["id"]}}, {"tokens", {token}}};
  };
  nlohmann::ordered_json framed = {
      {"type", "TemplateProcessing"},
      {"single", {special("<s>"), sequence("A"), special("</s>")}},
      {"pair", {special("<s>"), sequence("A"), special("</s>"), sequence("B"), special("</s>")}},
      {"special_tokens", {{"<s>", ids("<s>", 0)}, {"</s>", ids("</s>", 1)}}}};
  const nlohmann::ordered_json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const nlohmann::ordered_json json = {{"version", "1.0"},
                                       {"truncation", nullptr},
                                       {"padding", nullptr},
                                       {"added_tokens", added},
                                       {"normalizer", nullptr},
                                       {"pre_tokenizer", bytes},
                                       {"post_processor", frame ? framed : nlohmann::ordered_json(nullptr)},
                                       {"decoder", bytes},
                                       {"model",
                                        {{"type", "BPE"},
                                         {"dropout", nullptr},
                                         {"unk_token", nullptr},
                                         {"continuing_subword_prefix", nullptr},
                                         {"end_of_word_suffix", nullptr},
                                         {"fuse_unk", false},
                                         {"byte_fallback", false},
                                         {"ignore_merges", false},
                                         {"vocab", vocabulary},
                                         {"merges", {"t h", "th e", "\u0120 a", "a n"}}}}};
  return json.dump();
}

// Its tokenizer_config.json; the template is ChatML's.
inline std::string tiny_tokenizer_config() {
  const nlohmann::ordered_json json = {
      {"bos_token", "<s>"},
      {"eos_token", "</s>"},
      {"pad_token", "<pad>"},
      {"tokenizer_class", "PreTrainedTokenizerFast"},
      {"model_max_length", 64},
      {"chat_template",
       "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
       "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
       "{% endif %}"}};
  return json.dump();
}

}  // namespace lockstep::testing
