#include "data/table/look_through.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/bytes/kept_file.h"
#include "data/shards/sidecar.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

// Decoded at once.
constexpr int64_t kRecords = 2048;

struct Tallies {
  std::vector<ColumnTally> columns;
  LabelTally labels;
};

class Look {
 public:
  Look(const ShardSet& shards, const Transforms& transforms, const LookOptions& options)
      : shards_(shards),
        transforms_(transforms),
        options_(options),
        blocks_((shards.records() + kRecords - 1) / kRecords) {}

  std::vector<ColumnFacts> run() {
    // Each thread takes a stretch; of several bad records the first one is named, whichever is met first.
    const int64_t parts = std::min<int64_t>(blocks_, options_.threads);
    std::vector<Tallies> tallies(static_cast<size_t>(parts));
    std::vector<std::exception_ptr> failures(static_cast<size_t>(parts));
    ThreadPool pool(static_cast<int>(parts));
    pool.run(parts, [&](int64_t part) {
      const auto i = static_cast<size_t>(part);
      try {
        look(blocks_ * part / parts, blocks_ * (part + 1) / parts, tallies[i]);
      } catch (const UserError&) {
        failures[i] = std::current_exception();
      }
    });
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    for (size_t i = 1; i < tallies.size(); ++i) {
      tallies[0].labels.merge(tallies[i].labels);
      for (size_t c = 0; c < tallies[0].columns.size(); ++c)
        tallies[0].columns[c].merge(tallies[i].columns[c]);
    }
    std::vector<ColumnFacts> facts;
    for (size_t c = 0; c < tallies[0].columns.size(); ++c) {
      facts.push_back(tallies[0].columns[c].facts(tallies[0].labels));
      if (shards_.fields()[c].name == options_.label) facts.back().decides_label = false;
    }
    return facts;
  }

 private:
  void look(int64_t first_block, int64_t end_block, Tallies& tallies) {
    tallies.columns.resize(shards_.fields().size());
    BlockScratch scratch;
    BlockLabels labels;
    for (int64_t block = first_block; block < end_block; ++block) {
      const int64_t first = block * kRecords;
      shards_.load(first, std::min(kRecords, shards_.records() - first), scratch, counters_);
      const auto records = static_cast<size_t>(scratch.block.records);
      try {
        require_finite(scratch.block);
        labels.set(label_of(scratch.block), records);
        tallies.labels.add(labels);
        for (size_t c = 0; c < tallies.columns.size(); ++c)
          tallies.columns[c].add(scratch.block.columns[c], records, labels, options_.parses);
        for (const auto& transform : transforms_) transform->apply({options_.seed, 0, first}, scratch.block);
      } catch (const BadValue& bad) {
        throw UserError("{}: {}", shards_.describe(first + static_cast<int64_t>(bad.row())), bad.what());
      }
      report();
    }
  }

  const BlockColumn* label_of(const ColumnBlock& block) const {
    const auto found = std::find_if(block.columns.begin(), block.columns.end(),
                                    [&](const BlockColumn& column) { return column.name == options_.label; });
    return options_.label.empty() || found == block.columns.end() ? nullptr : &*found;
  }

  void report() {
    const double share = static_cast<double>(++done_) / static_cast<double>(blocks_);
    const int64_t bytes = shards_.manifest().bytes();
    if (options_.progress) options_.progress(static_cast<int64_t>(share * static_cast<double>(bytes)), bytes);
  }

  const ShardSet& shards_;
  const Transforms& transforms_;
  const LookOptions& options_;
  int64_t blocks_;
  std::atomic<int64_t> done_ = 0;
  StageCounters counters_;
};

}  // namespace

std::vector<ColumnFacts> look_through(const ShardSet& shards, const Transforms& transforms,
                                      const LookOptions& options) {
  if (shards.records() == 0) return std::vector<ColumnFacts>(shards.fields().size());
  return Look(shards, transforms, options).run();
}

std::vector<ColumnFacts> looked_through(const ShardSet& shards, const Transforms& transforms,
                                        const LookOptions& options, const std::string& fingerprint,
                                        const IndexFolder& index_folder) {
  const std::string key = sha256(fmt::format("facts 1\n{}\n{}\n", fingerprint, options.label));
  const std::filesystem::path beside =
      sidecar_path(shards.format(), shards.manifest().shards()[0].name, index_folder);
  const std::string path = (beside.parent_path() / fmt::format("facts-{}.txt", key.substr(0, 16))).string();
  const auto kept = [&]() -> std::optional<std::vector<ColumnFacts>> {
    const auto text = read_kept(path);
    return text ? parse_facts(*text, shards.fields().size()) : std::nullopt;
  };
  if (auto facts = kept()) return *facts;
  if (!index_folder.writes) return look_through(shards, transforms, options);
  const FileLock lock(path + ".lock");
  if (auto facts = kept()) return *facts;
  std::vector<ColumnFacts> facts = look_through(shards, transforms, options);
  write_kept(path, to_text(facts));
  return facts;
}

}  // namespace lockstep
