#include "chat/row_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace lockstep {

namespace fs = std::filesystem;

TextFrame text_frame(const Tokenizer& tokenizer) {
  // Where the tokens of a text stand within its framed ones.
  const std::vector<int32_t> plain = tokenizer.encode("a", false), framed = tokenizer.encode("a", true);
  const auto at = std::search(framed.begin(), framed.end(), plain.begin(), plain.end());
  if (plain.empty() || at == framed.end())
    throw UserError("the tokenizer does not frame texts with special tokens; tokenize without them");
  return {{framed.begin(), at}, {at + std::ssize(plain), framed.end()}};
}

namespace {

// SentencePiece's, in the order of their names.
std::vector<fs::path> model_files(const fs::path& folder) {
  std::vector<fs::path> models;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".model") models.push_back(entry.path());
  std::sort(models.begin(), models.end());
  return models;
}

}  // namespace

bool has_tokenizer(const std::string& folder) {
  return fs::exists(fs::path(folder) / "tokenizer.json") || !model_files(folder).empty();
}

std::string tokenizer_fingerprint(const std::string& path) {
  Sha256 hash;
  const bool is_folder = fs::is_directory(path);
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  const auto add = [&](const fs::path& file) {
    if (!fs::is_regular_file(file)) return;
    const std::string content = read_file(file.string());
    hash.update(fmt::format("{} {}\n", file.extension().string(), content.size()));
    hash.update(content);
  };
  if (!is_folder) {
    add(path);
  } else if (fs::exists(folder / "tokenizer.json")) {
    add(folder / "tokenizer.json");
  } else {
    for (const fs::path& model : model_files(folder)) add(model);
  }
  add(folder / "tokenizer_config.json");
  return hash.finish();
}

RowTokenizer::RowTokenizer(std::shared_ptr<const Tokenizer> tokenizer, std::string fingerprint)
    : tokenizer_(std::move(tokenizer)),
      frame_(text_frame(*tokenizer_)),
      pad_(tokenizer_->pad().value_or(tokenizer_->eos().value_or(0))),
      fingerprint_(std::move(fingerprint)) {}

std::shared_ptr<const RowTokenizer> RowTokenizer::open(const std::string& path) {
  return std::make_shared<RowTokenizer>(Tokenizer::open(path), tokenizer_fingerprint(path));
}

void RowTokenizer::encode(std::string_view text, int64_t most, std::vector<int32_t>& ids) const {
  LOCKSTEP_CHECK(most > frame_tokens(), "rows of {} tokens for a frame of {}", most, frame_tokens());
  const size_t begin = ids.size();
  ids.insert(ids.end(), frame_.before.begin(), frame_.before.end());
  tokenizer_->encode_to(text, false, ids);
  ids.resize(std::min(ids.size(), begin + static_cast<size_t>(most) - frame_.after.size()));
  ids.insert(ids.end(), frame_.after.begin(), frame_.after.end());
}

}  // namespace lockstep
