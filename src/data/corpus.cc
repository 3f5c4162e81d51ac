#include "data/corpus.h"

#include "data/format/tokens_format.h"

namespace lockstep {

std::shared_ptr<const Source> open_corpus(const CorpusOptions& options,
                                          const std::vector<std::string>& files) {
  FormatOptions format;
  format.settings = {{"seq", std::to_string(options.seq)},
                     {"vocab", std::to_string(options.vocab)},
                     {"pack", options.best_fit ? "best_fit" : "split"},
                     {"documents", options.separate ? "separate" : "joined"}};
  format.bad = options.bad;
  const ShardSetOptions set{.index_folder = options.index_folder,
                            .threads = options.threads,
                            .most_bad = options.most_bad,
                            .progress = options.progress};
  auto shards = std::make_shared<ShardSet>(make_tokens_format(format), open_token_shards(files), set);
  warn_of_bad_records(*shards);
  std::vector<Column> columns;
  for (const BlockField& field : shards->fields())
    columns.push_back({field.name, DType::kI32, {options.seq}});
  return open_rows(std::move(shards), std::move(columns), options.budget);
}

}  // namespace lockstep
