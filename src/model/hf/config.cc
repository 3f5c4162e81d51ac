#include "model/hf/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {

using nlohmann::json;

namespace {

// Far above any published one.
constexpr int64_t kLargestFile = int64_t{16} << 20;
constexpr size_t kDeepest = 32;
constexpr int64_t kLargestSize = INT32_MAX;

// Keys that say nothing about what the model computes: where it came from, how it was saved, how text is
// generated with it, what else may be returned.
constexpr std::string_view kHarmless[] = {
    // Provenance and storage.
    "_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "dtype", "torch_dtype",
    "architectures", "model_type", "unsloth_version", "unsloth_fixed", "transformers.js_config", "license",
    // Tokens with a meaning to tokenizers and to generation.
    "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "cls_token_id",
    "mask_token_id", "decoder_start_token_id", "tokenizer_class", "prefix", "model_max_length",
    "max_sequence_length",
    // What is returned, kept or cut up on the way.
    "use_cache", "output_attentions", "output_hidden_states", "output_scores", "output_past", "return_dict",
    "return_dict_in_generate", "torchscript", "use_bfloat16", "chunk_size_feed_forward", "pretraining_tp",
    "gradient_checkpointing", "cache_implementation", "attn_implementation", "_attn_implementation",
    "_attn_implementation_autoset", "tf_legacy_loss", "remove_invalid_values", "encoder_stride",
    "ignore_keys_at_rope_validation", "is_llama_config",
    // Names of classes and of tasks.
    "id2label", "label2id", "num_labels", "_num_labels", "finetuning_task", "task_specific_params",
    // Sampling: generation_config.json has it.
    "max_length", "min_length", "max_new_tokens", "do_sample", "early_stopping", "num_beams",
    "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "typical_p",
    "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
    "bad_words_ids", "num_return_sequences", "forced_bos_token_id", "forced_eos_token_id",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens", "epsilon_cutoff",
    "eta_cutoff", "penalty_alpha"};

// Keys of which one value changes nothing, and the others are not implemented.
struct Neutral {
  std::string_view key;
  std::string_view value;  // JSON; null is always as good
  std::string_view because;
};
constexpr Neutral kNeutral[] = {
    {"is_causal", "true", "a decoder that looks ahead is not implemented"},
    {"is_decoder", "false", "an encoder turned into a decoder is not implemented"},
    {"is_encoder_decoder", "false", "models of an encoder and a decoder are not implemented"},
    {"add_cross_attention", "false", "attention to another sequence is not implemented"},
    {"cross_attention_hidden_size", "null", "attention to another sequence is not implemented"},
    {"tie_encoder_decoder", "false", "models of an encoder and a decoder are not implemented"},
    {"pruned_heads", "{}", "models with pruned heads are not implemented"},
    {"per_layer_config", "null", "layers that differ in their settings are not implemented"},
    {"quantization_config", "null", "quantized weights are not read; use the folder of the original weights"},
    {"compression_config", "null", "compressed weights are not read; use the folder of the original weights"},
    {"auto_map", "null", "the model brings code of its own, which is never run"},
    {"transformers_weights", "null", "weights are read from model.safetensors or its index alone"},
    {"use_bidirectional_attention", "false", "a decoder that looks ahead is not implemented"},
    {"use_mrope", "false", "positions in several dimensions are not implemented"},
    {"rope_interleaved", "false", "only rotary positions that turn halves are implemented here"},
};

template <size_t N>
bool listed(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The text as a tree, in which no key stands twice.
json parsed(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  bool deep = false;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      keys.emplace_back();
      deep = deep || keys.size() > kDeepest;
    }
    if (event == json::parse_event_t::object_end || event == json::parse_event_t::array_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  json tree;
  try {
    tree = json::parse(text, watch);
  } catch (const json::exception& error) {
    throw UserError("{} is not JSON: {}", where, error.what());
  }
  if (!tree.is_object()) throw UserError("{} is not a JSON object; config.json of a model is one", where);
  if (!twice.empty()) throw UserError("{} has the key {} twice; keep one of them", where, twice);
  if (deep) throw UserError("{} is nested more than {} deep; config.json of a model is not", where, kDeepest);
  return tree;
}

}  // namespace

struct HfConfig::Document {
  json tree;
  std::string where;
  std::set<std::string, std::less<>> read;    // whole names: "rope_scaling.factor"
  std::set<std::string, std::less<>> opened;  // prefixes: "rope_scaling."

  // The object whose keys begin with the prefix.
  const json& at(const std::string& prefix) const {
    const json* object = &tree;
    for (size_t begin = 0; begin < prefix.size();) {
      const size_t end = prefix.find('/', begin);
      object = &(*object)[prefix.substr(begin, end - begin)];
      begin = end + 1;
    }
    return *object;
  }
  // Marks it as read; null where it is absent or null.
  const json* find(const std::string& prefix, std::string_view key) {
    read.insert(prefix + std::string(key));
    const json& object = at(prefix);
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
};

HfConfig::HfConfig(std::shared_ptr<Document> document, std::string prefix)
    : document_(std::move(document)), prefix_(std::move(prefix)) {}

HfConfig HfConfig::read(const std::string& path) {
  const std::string file =
      std::filesystem::is_directory(path) ? (std::filesystem::path(path) / "config.json").string() : path;
  return parse(read_file(file, kLargestFile), file);
}

HfConfig HfConfig::parse(std::string_view text, const std::string& where) {
  auto document = std::make_shared<Document>();
  document->tree = parsed(text, where);
  document->where = where;
  return HfConfig(std::move(document), "");
}

const std::string& HfConfig::where() const { return document_->where; }

bool HfConfig::has(std::string_view key) const {
  const json& object = document_->at(prefix_);
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

bool HfConfig::contains(std::string_view key) const { return document_->at(prefix_).contains(key); }

void HfConfig::fail(std::string_view key, const std::string& problem) const {
  const json& object = document_->at(prefix_);
  const auto found = object.find(key);
  std::string value = "absent";
  if (found != object.end()) value = found->dump(-1, ' ', true, json::error_handler_t::replace);
  if (value.size() > 200) value = value.substr(0, 200) + "...";
  std::string name = prefix_ + std::string(key);
  std::replace(name.begin(), name.end(), '/', '.');
  throw UserError("{}: {} is {}: {}", document_->where, name, value, problem);
}

std::optional<int64_t> HfConfig::maybe_integer(std::string_view key) const {
  const json* value = document_->find(prefix_, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)))
    fail(key, "write a whole number");
  return value->get<int64_t>();
}

std::optional<double> HfConfig::maybe_number(std::string_view key) const {
  const json* value = document_->find(prefix_, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) fail(key, "write a number");
  return value->get<double>();
}

std::optional<std::string> HfConfig::maybe_text(std::string_view key) const {
  const json* value = document_->find(prefix_, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, "write a text in quotes");
  return value->get<std::string>();
}

int64_t HfConfig::integer(std::string_view key) const {
  const std::optional<int64_t> value = maybe_integer(key);
  if (!value) fail(key, "the model needs this number");
  return *value;
}
int64_t HfConfig::integer(std::string_view key, int64_t otherwise) const {
  return maybe_integer(key).value_or(otherwise);
}
double HfConfig::number(std::string_view key) const {
  const std::optional<double> value = maybe_number(key);
  if (!value) fail(key, "the model needs this number");
  return *value;
}
double HfConfig::number(std::string_view key, double otherwise) const {
  return maybe_number(key).value_or(otherwise);
}
std::string HfConfig::text(std::string_view key, std::string_view otherwise) const {
  return maybe_text(key).value_or(std::string(otherwise));
}

bool HfConfig::flag(std::string_view key, bool otherwise) const {
  const json* value = document_->find(prefix_, key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(key, "write true or false");
  return value->get<bool>();
}

std::vector<double> HfConfig::numbers(std::string_view key) const {
  const json* value = document_->find(prefix_, key);
  if (value == nullptr) return {};
  if (!value->is_array()) fail(key, "write a list of numbers");
  std::vector<double> result;
  for (const json& entry : *value) {
    if (!entry.is_number() || !std::isfinite(entry.get<double>())) fail(key, "write a list of numbers");
    result.push_back(entry.get<double>());
  }
  return result;
}

std::vector<std::string> HfConfig::texts(std::string_view key) const {
  const json* value = document_->find(prefix_, key);
  if (value == nullptr) return {};
  if (!value->is_array()) fail(key, "write a list of texts");
  std::vector<std::string> result;
  for (const json& entry : *value) {
    if (!entry.is_string()) fail(key, "write a list of texts");
    result.push_back(entry.get<std::string>());
  }
  return result;
}

std::map<std::string, std::string> HfConfig::text_map(std::string_view key) const {
  const json* value = document_->find(prefix_, key);
  if (value == nullptr) return {};
  if (!value->is_object()) fail(key, "write an object of texts");
  std::map<std::string, std::string> result;
  for (const auto& [name, entry] : value->items()) {
    if (!entry.is_string()) fail(key, "write an object of texts");
    result.emplace(name, entry.get<std::string>());
  }
  return result;
}

std::optional<HfConfig> HfConfig::object(std::string_view key) const {
  const json* value = document_->find(prefix_, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) fail(key, "write an object, {...}");
  if (key.find('/') != std::string_view::npos) fail(key, "this key cannot be read as an object");
  std::string prefix = prefix_ + std::string(key) + "/";
  document_->opened.insert(prefix);
  return HfConfig(document_, std::move(prefix));
}

int64_t HfConfig::size(std::string_view key, int64_t least) const { return size(key, integer(key), least); }
int64_t HfConfig::size(std::string_view key, int64_t otherwise, int64_t least) const {
  const int64_t value = integer(key, otherwise);
  if (value < least) fail(key, fmt::format("it must be at least {}", least));
  if (value > kLargestSize) fail(key, fmt::format("it must be at most {}", kLargestSize));
  return value;
}

double HfConfig::probability(std::string_view key, double otherwise) const {
  const double value = number(key, otherwise);
  if (!(value >= 0 && value < 1)) fail(key, "a probability is at least 0 and below 1");
  return value;
}

void HfConfig::require(std::string_view key, std::string_view allowed, std::string_view because) const {
  const json* value = document_->find(prefix_, key);
  if (value != nullptr && *value != json::parse(allowed))
    fail(key, fmt::format("{}; only {} is implemented", because, allowed));
}

void HfConfig::ignore(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) document_->read.insert(prefix_ + std::string(key));
}

void HfConfig::refuse_unread() const {
  const json& object = document_->at(prefix_);
  for (const auto& [key, value] : object.items()) {
    if (document_->opened.count(prefix_ + key + "/") > 0) {
      HfConfig(document_, prefix_ + key + "/").refuse_unread();
      continue;
    }
    if (value.is_null() || document_->read.count(prefix_ + key) > 0) continue;
    const bool model = prefix_.empty() || prefix_ == "text_config/";
    if (model && (listed(kHarmless, key) || key.starts_with("summary_"))) continue;
    const auto neutral = std::find_if(std::begin(kNeutral), std::end(kNeutral),
                                      [&key = key](const Neutral& n) { return n.key == key; });
    if (neutral == std::end(kNeutral))
      fail(key,
           "this key is not known for the family, and it may change what the model computes; remove it "
           "if it does not");
    if (value != json::parse(neutral->value))
      fail(key, fmt::format("{}; only {} is", neutral->because, neutral->value));
  }
}

}  // namespace lockstep
