#include "data/open/part_options.h"

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::string_view kClass = "class ";
constexpr std::string_view kNumbers = "classes are numbers\n";

}  // namespace

TableOptions table_options(const DataOptions& options) {
  TableOptions table;
  table.format = options.table;
  table.index_folder = options.index_folder;
  table.encoding = options.encoding;
  table.encoding.hold_out = 0;
  table.threads = options.threads;
  table.progress = options.progress;
  table.budget = options.budget;
  table.transforms = options.transforms;
  table.bad = options.bad;
  table.most_bad = options.most_bad;
  table.settings = options.settings;
  table.missing = options.missing;
  table.looks_through = options.looks_through;
  table.in_parts = options.in_parts;
  table.seed = options.seed;
  if (!options.split_column.empty())
    table.split = TableSplit{options.split_column, options.split_eval, options.seed};
  table.filter = options.filter;
  table.subsample = options.subsample;
  table.eval_budget = options.eval_budget;
  if (!options.text_column.empty())
    table.text = TextRole{options.text_column, options.encoding.label, options.seq,
                          options.vocab,       options.classes,        options.text_tokenizer};
  return table;
}

CorpusOptions corpus_options(const DataOptions& options) {
  CorpusOptions corpus;
  corpus.seq = options.seq;
  corpus.index_folder = options.index_folder;
  corpus.vocab = options.vocab;
  corpus.best_fit = options.best_fit;
  corpus.separate = options.separate;
  corpus.threads = options.threads;
  corpus.progress = options.progress;
  corpus.budget = options.budget;
  corpus.bad = options.bad;
  corpus.most_bad = options.most_bad;
  return corpus;
}

ImageDataOptions image_options(const DataOptions& options) {
  ImageDataOptions images;
  images.tar = options.format == DataOptions::Format::kTar;
  images.size = options.image;
  images.index_folder = options.index_folder;
  images.classes = options.classes;
  images.threads = options.threads;
  images.progress = options.progress;
  images.budget = options.budget;
  images.bad = options.bad;
  images.most_bad = options.most_bad;
  images.seed = options.seed;
  images.resize = options.resize;
  images.stretch = options.stretch;
  images.colors = options.colors;
  return images;
}

std::string text_of_classes(const std::vector<std::string>& classes) {
  if (classes.empty()) return std::string(kNumbers);
  std::string text;
  for (const std::string& name : classes) {
    if (name.find('\n') != std::string::npos)
      throw UserError("the class '{}' has a new line in its name; rename it", name);
    text += fmt::format("{}{}\n", kClass, name);
  }
  return text;
}

std::vector<std::string> classes_of_text(std::string_view text) {
  std::vector<std::string> classes;
  if (text == kNumbers) return classes;
  for (std::string_view left = text; !left.empty();) {
    const size_t end = left.find('\n');
    if (!left.starts_with(kClass) || end == std::string_view::npos) {
      classes.clear();
      break;
    }
    classes.emplace_back(left.substr(kClass.size(), end - kClass.size()));
    left.remove_prefix(end + 1);
  }
  if (classes.empty())
    throw UserError("the run does not say which classes its images have; train it again with this version");
  return classes;
}

}  // namespace lockstep
