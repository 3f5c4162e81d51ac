// vocabulary: categories as rows of a table, by how often the training records have them. 0 is for missing
// ones, 1 for those that are not among the most frequent, 2 for the most frequent; equally frequent ones are
// ordered by their bytes. Counting takes bounded memory, and an error says where that is not enough.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"
#include "data/transform/columns_fit.h"

namespace lockstep {
namespace {

constexpr int32_t kOther = 1, kFirst = 2;

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename Value>
using ByText = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

// How often each value of a column was met.
class ColumnCounts {
 public:
  explicit ColumnCounts(int64_t limit) : limit_(limit) {}

  void add(const BlockColumn& column, size_t records) {
    name_ = column.name;
    for_each_category(column, records, [&](size_t, std::string_view text) {
      if (!text.empty()) count(text, 1);
    });
  }
  // The limit is looked at here and not while adding, so that the verdict is on the same records for any
  // number of threads.
  void merge(const ColumnCounts& next) {
    for (const auto& [text, met] : next.counts_) count(text, met);
    if (bytes_ > limit_)
      throw UserError(
          "transform vocabulary: counting the values of column '{}' takes more than {} MiB; use hash, which "
          "counts nothing, or allow more with memory",
          next.name_, limit_ >> 20);
  }
  const ByText<int64_t>& counts() const { return counts_; }

 private:
  void count(std::string_view text, int64_t met) {
    // What a node of the map takes beside the text, about.
    constexpr int64_t kEach = 96;
    const auto found = counts_.find(text);
    if (found != counts_.end()) {
      found->second += met;
      return;
    }
    counts_.emplace(text, met);
    bytes_ += static_cast<int64_t>(text.size()) + kEach;
  }

  int64_t limit_, bytes_ = 0;
  std::string name_;
  ByText<int64_t> counts_;
};

std::string escaped(std::string_view word) {
  std::string text;
  for (const char c : word) {
    if (c == '\n')
      text += "\\n";
    else if (c == '\\')
      text += "\\\\";
    else
      text += c;
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string word;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool mark = text[i] == '\\' && i + 1 < text.size();
    if (mark) ++i;
    word += mark && text[i] == 'n' ? '\n' : text[i];
  }
  return word;
}

using Words = std::vector<std::string>;

class Vocabulary : public ColumnTransform {
 public:
  explicit Vocabulary(const TransformOptions& options) : Vocabulary(TransformSettings(options)) {}

  std::unique_ptr<TransformFit> begin_fit() const override {
    return std::make_unique<ColumnsFit<ColumnCounts>>(from(), ColumnCounts(memory_ << 20));
  }
  void finish_fit(const TransformFit& fit) override {
    const auto& columns = dynamic_cast<const ColumnsFit<ColumnCounts>&>(fit);
    std::vector<Words> words;
    for (size_t i = 0; i < from().size(); ++i) words.push_back(most_frequent(columns.statistic(i)));
    set(std::move(words));
  }
  // A line for the column, then one for each word.
  std::string fitted() const override {
    std::string text;
    for (size_t i = 0; i < words_.size(); ++i) {
      text += fmt::format("column {}: {} words\n", from()[i], words_[i].size());
      for (const std::string& word : words_[i]) text += escaped(word) + "\n";
    }
    return text;
  }
  void set_fitted(std::string_view text) override {
    const std::vector<Words> before = words_;
    std::vector<Words> words;
    std::string_view rest = text;
    const auto line = [&] {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view found = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      return found;
    };
    for (const std::string& column : from()) {
      std::string_view head = line();
      const std::string begin = fmt::format("column {}: ", column);
      if (head.starts_with(begin)) head.remove_prefix(begin.size());
      const auto count = parse_number(head.substr(0, head.find(' '))).value_or(0);
      words.emplace_back();
      while (static_cast<double>(words.back().size()) < count && !rest.empty())
        words.back().push_back(unescaped(line()));
    }
    const bool fit = std::all_of(words.begin(), words.end(), [&](const Words& of_column) {
      return static_cast<int64_t>(of_column.size()) <= size_;
    });
    set(std::move(words));
    if (fit && fitted() == text) return;
    set(before);
    throw UserError("the vocabulary is not that of these columns");
  }

 protected:
  // Before it is fitted too, so that a table that is too small is found at once.
  BlockField made(size_t, const BlockField&) const override {
    return {.name = {}, .type = ValueType::kI32, .ids = kFirst + size_};
  }

  void make(size_t i, const BlockColumn& from, ColumnBlock& block, BlockColumn& to) const override {
    LOCKSTEP_CHECK(i < ids_.size(), "vocabulary is used before it is fitted");
    const auto records = static_cast<size_t>(block.records);
    std::vector<int32_t> ids(records);
    for_each_category(from, records, [&](size_t r, std::string_view text) {
      if (text.empty()) {
        mark_missing(to, r, records);
        return;
      }
      const auto found = ids_[i].find(text);
      ids[r] = found == ids_[i].end() ? kOther : found->second;
    });
    to.values = std::move(ids);
  }

 private:
  explicit Vocabulary(TransformSettings settings)
      : ColumnTransform(settings, 1, Wanted::kText),
        size_(settings.whole("size", 1, 100'000'000)),
        min_count_(settings.whole("min_count", 1, int64_t{1} << 53, 1)),
        memory_(settings.whole("memory", 1, 1 << 20, 1024)) {
    settings.finish();
  }

  Words most_frequent(const ColumnCounts& counted) const {
    using Met = std::pair<std::string_view, int64_t>;
    std::vector<Met> met;
    for (const auto& [text, count] : counted.counts())
      if (count >= min_count_) met.emplace_back(text, count);
    std::sort(met.begin(), met.end(), [](const Met& a, const Met& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    met.resize(std::min(met.size(), static_cast<size_t>(size_)));
    Words words;
    for (const Met& each : met) words.emplace_back(each.first);
    return words;
  }

  void set(std::vector<Words> words) {
    words_ = std::move(words);
    ids_.assign(words_.size(), {});
    for (size_t i = 0; i < words_.size(); ++i)
      for (size_t w = 0; w < words_[i].size(); ++w)
        ids_[i].emplace(words_[i][w], static_cast<int32_t>(w) + kFirst);
  }

  int64_t size_, min_count_, memory_;
  std::vector<Words> words_;          // of each column, the most frequent first
  std::vector<ByText<int32_t>> ids_;  // the same the other way round
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"size", "how many categories get a number of their own; with two more, at most `model.rows`", ""},
    {"min_count", "how often the training records must have a category", "1"},
    {"memory", "MiB that counting the values of a column may take", "1024"},
};

}  // namespace

constinit const TransformEntry kVocabularyTransform{
    "vocabulary",
    "Categories numbered by how often the training records have them: 2 is the most frequent, equally "
    "frequent ones "
    "are ordered by their bytes. 0 is for missing ones, 1 for all others. Each column has a vocabulary of "
    "its own, kept "
    "with the run.",
    "{name: vocabulary, columns: [category, country], size: 500, min_count: 5}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Vocabulary>(options);
    }};

}  // namespace lockstep
