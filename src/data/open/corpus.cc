#include "data/open/corpus.h"

#include <fmt/format.h>

#include "data/bytes/byte_source.h"
#include "data/bytes/files.h"
#include "data/text/text_format.h"
#include "data/tokens/tokens_format.h"

namespace lockstep {

std::shared_ptr<const Source> open_corpus(const CorpusOptions& options,
                                          const std::vector<std::string>& files) {
  return open_corpus(options, open_token_shards(files));
}

std::shared_ptr<const Source> open_corpus(const CorpusOptions& options,
                                          std::vector<std::unique_ptr<ByteSource>> files) {
  FormatOptions format;
  format.settings = {{"seq", std::to_string(options.seq)},
                     {"vocab", std::to_string(options.vocab)},
                     {"pack", options.best_fit ? "best_fit" : "split"},
                     {"documents", options.separate ? "separate" : "joined"}};
  if (options.marked) format.settings["marked"] = "true";
  format.bad = options.bad;
  const ShardSetOptions set{.index_folder = options.index_folder,
                            .threads = options.threads,
                            .most_bad = options.most_bad,
                            .progress = options.progress};
  auto shards = std::make_shared<ShardSet>(make_tokens_format(format), std::move(files), set);
  warn_of_bad_records(*shards);
  std::vector<Column> columns;
  for (const BlockField& field : shards->fields())
    columns.push_back({field.name, DType::kI32, {options.seq}});
  return open_rows(std::move(shards), std::move(columns), options.budget);
}

namespace {

std::unique_ptr<ByteSource> open_joined(const std::vector<std::string>& paths, const IndexFolder& folder) {
  std::vector<std::unique_ptr<ByteSource>> parts;
  for (const std::string& path : paths) parts.push_back(open_shard(path, folder));
  if (parts.size() == 1) return std::move(parts[0]);
  return join_bytes(fmt::format("{} and {} more", paths[0], paths.size() - 1), std::move(parts));
}

}  // namespace

std::shared_ptr<const Source> open_text_files(const TextOptions& options,
                                              const std::vector<std::string>& files) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  auto format = make_text_format({{}, {{"seq", std::to_string(options.seq)}}});
  shards.push_back(open_joined(expand_files(files), options.index_folder));
  auto set = std::make_shared<ShardSet>(
      std::move(format), std::move(shards),
      ShardSetOptions{.index_folder = options.index_folder, .progress = options.progress});
  std::vector<Column> columns;
  for (const BlockField& field : set->fields()) columns.push_back({field.name, DType::kI32, {options.seq}});
  return open_rows(std::move(set), std::move(columns), options.budget);
}

}  // namespace lockstep
