#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "tokenizer/utf8.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The file of a folder that holds the tokenizer.
std::string file_of_folder(const fs::path& folder) {
  if (fs::exists(folder / "tokenizer.json")) return folder / "tokenizer.json";
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model"}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  std::vector<std::string> models;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".model") models.push_back(entry.path());
  }
  if (models.size() == 1) return models[0];
  if (models.empty())
    throw UserError(
        "{}: no tokenizer here; put a tokenizer.json or a SentencePiece tokenizer.model into the folder",
        folder.string());
  std::sort(models.begin(), models.end());
  throw UserError("{}: several .model files and no tokenizer.json; name one of them, as {}", folder.string(),
                  models[0]);
}

// A special token of tokenizer_config.json: a text, or an object with one.
std::string token_text(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return "";
  const auto content = found->find("content");
  return content != found->end() && content->is_string() ? content->get<std::string>() : "";
}

bool flag_or(const json& config, const char* key, bool otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::open(const std::string& path) {
  if (!fs::exists(path))
    throw UserError(
        "{}: no such file or folder; a tokenizer is a tokenizer.json, a SentencePiece .model, or a folder "
        "with one",
        path);
  const std::string file = fs::is_directory(path) ? file_of_folder(path) : path;
  const std::string bytes = read_file(file);
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool is_json =
      fs::path(file).extension() == ".json" || (first != std::string::npos && bytes[first] == '{');
  std::unique_ptr<Tokenizer> tokenizer = is_json ? from_json(bytes, file) : from_sentencepiece(bytes, file);
  const fs::path config = fs::path(file).parent_path() / "tokenizer_config.json";
  if (fs::exists(config)) tokenizer->read_config(read_file(config), config);
  return tokenizer;
}

void Tokenizer::frame(bool, bool) {}

void Tokenizer::read_config(std::string_view text, const std::string& where) {
  json config;
  try {
    config = json::parse(text);
  } catch (const json::exception& error) {
    throw UserError("{}: not JSON: {}", where, error.what());
  }
  if (!config.is_object()) throw UserError("{}: must be an object, not {}", where, config.type_name());
  for (const auto& [key, id] :
       {std::pair{"bos_token", &bos_}, {"eos_token", &eos_}, {"pad_token", &pad_}, {"unk_token", &unk_}}) {
    const std::string token = token_text(config, key);
    if (!token.empty()) *id = id_of(token);
  }
  // What a .model cannot say of itself; these families have it in their code where the file does not say it.
  const auto type = config.find("tokenizer_class");
  const std::string name = type != config.end() && type->is_string() ? type->get<std::string>() : "";
  const bool begins = name.starts_with("Llama") || name.starts_with("Gemma") || name.starts_with("CodeLlama");
  frame(flag_or(config, "add_bos_token", begins), flag_or(config, "add_eos_token", name.starts_with("T5")));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool special_tokens) const {
  std::vector<int32_t> ids;
  encode_to(text, special_tokens, ids);
  return ids;
}

std::vector<std::vector<int32_t>> Tokenizer::encode_batch(std::span<const std::string_view> texts,
                                                          bool special_tokens, ThreadPool& pool) const {
  std::vector<std::vector<int32_t>> ids(texts.size());
  pool.run(static_cast<int64_t>(texts.size()), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    encode_to(texts[i], special_tokens, ids[i]);
  });
  return ids;
}

std::string StreamDecoder::push(int32_t id) {
  ids_.push_back(id);
  std::string text = decoded();
  // The end of a character may be missing: it is shown as U+FFFD until it has come.
  if (text.size() <= shown_.size() || text.ends_with(tok::kReplacementChar)) return "";
  std::string fresh = text.starts_with(shown_) ? text.substr(shown_.size()) : text;
  // The ids shown last are kept in front of the next ones, since a decoder may treat the first tokens
  // differently; and those before them too as long as the last ones alone decode to nothing, or to something
  // else.
  std::vector<int32_t> last(ids_.begin() + static_cast<std::ptrdiff_t>(context_), ids_.end());
  std::string last_text = tokenizer_.decode(last, skip_special_);
  const bool enough = !last_text.empty() && text.ends_with(last_text);
  if (enough) ids_ = std::move(last);
  shown_ = enough ? std::move(last_text) : std::move(text);
  context_ = ids_.size();
  return fresh;
}

std::string StreamDecoder::finish() {
  const std::string text = decoded();
  std::string fresh = text.size() > shown_.size() ? text.substr(shown_.size()) : "";
  ids_.clear();
  context_ = 0;
  shown_.clear();
  return fresh;
}

}  // namespace lockstep
