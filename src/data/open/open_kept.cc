#include "data/open/open_kept.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "base/nearest.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/files.h"
#include "data/bytes/folder_bytes.h"
#include "data/images/image_shard.h"
#include "data/open/part_options.h"
#include "data/open/tokenized.h"
#include "data/shards/formats.h"
#include "data/table/kept_table.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Kind = DataOptions::Format;

bool is_images(const DataOptions& options) {
  return options.format == Kind::kImages || options.format == Kind::kTar;
}

// ---- tables

// Of a run on generated transactions the job does not say what the label is; its constants do.
TableOptions kept_options(const DataOptions& options, const std::string& constants) {
  TableOptions table = table_options(options);
  table.budget = options.eval_budget;
  table.in_parts = false;
  if (table.text || !table.encoding.label.empty()) return table;
  const size_t at = constants.starts_with("label ") ? 0 : constants.rfind("\nlabel ") + 1;
  const size_t begin = at + std::string_view("label ").size();
  table.encoding.label = constants.substr(begin, constants.find('\n', begin) - begin);
  return table;
}

FormatOptions format_options(const TableOptions& table, const std::vector<BlockField>& columns) {
  return {columns, table.settings, table.bad, table.missing};
}

Shards open_files(const TableOptions& table, const std::vector<std::string>& files) {
  Shards shards;
  const auto format = make_format(table.format, format_options(table, {}));
  for (const std::string& path : expand_files(files, format->suffix()))
    shards.push_back(open_shard(path, table.index_folder));
  return shards;
}

// The columns of a record in types that hold every value. CSV has only texts; where another format is
// written, what the model reads as a number is one.
std::vector<BlockField> fields_to_write(const TableOptions& table, const std::vector<std::string>& files,
                                        const std::vector<BlockField>& decoded, const OwnColumns& own) {
  const Shards shards = open_files(table, files);
  const auto format = make_format(table.format, format_options(table, {}));
  const bool named_by_records = table.format == "jsonl" || table.format == "tfrecord";
  const bool all = named_by_records && table.bad == BadRecords::kStop;
  std::vector<BlockField> fields = all ? format->all_fields(shards, {}) : format->fields(*shards[0]);
  if (table.format != "csv" || own.written_as == "csv") return fields;
  for (BlockField& field : fields)
    if (std::any_of(decoded.begin(), decoded.end(), [&](const BlockField& read) {
          return read.name == field.name && read.type == ValueType::kF64;
        }))
      field.type = ValueType::kF64;
  return fields;
}

std::vector<BlockField> chosen_fields(const std::vector<BlockField>& fields, const OwnColumns& own,
                                      std::vector<std::string>& left_out) {
  std::vector<BlockField> chosen;
  if (!own.names.empty()) {
    std::vector<std::string_view> known;
    for (const BlockField& field : fields) known.push_back(field.name);
    for (const std::string& name : own.names) {
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end())
        throw UserError("the data has no column '{}' to write; {}", name, suggestion(name, known));
      chosen.push_back(fields[static_cast<size_t>(found - known.begin())]);
    }
    return chosen;
  }
  for (const BlockField& field : fields) {
    try {
      (void)make_table_writer(own.written_as, {field});
      chosen.push_back(field);
    } catch (const UserError& refusal) {
      left_out.push_back(refusal.what());
    }
  }
  return chosen;
}

RecordsToPredict predict_table(const DataOptions& options, const std::string& constants,
                               const std::vector<std::string>& files, const OwnColumns& own) {
  const TableOptions table = kept_options(options, constants);
  const Table kept = restore_table(table, constants, files);
  Transforms chain = without_label(kept, table.text ? table.text->label : table.encoding.label);
  const std::vector<BlockField> decoded = columns_to_decode(chain);
  // With bad records skipped, what the model reads decides what is bad, for both sets.
  const auto indexed_by = make_format(table.format, format_options(table, decoded));
  const auto open = [&](const std::vector<BlockField>& columns) {
    ShardSetOptions set{.index_folder = table.index_folder,
                        .threads = table.threads,
                        .most_bad = table.most_bad,
                        .progress = table.progress,
                        .indexed_by = indexed_by.get(),
                        .check_columns = true};
    return std::make_shared<ShardSet>(make_format(table.format, format_options(table, columns)),
                                      open_files(table, files), set);
  };
  RecordsToPredict records;
  const auto shards = open(decoded);
  warn_of_bad_records(*shards);
  const std::vector<BlockField> fields =
      chosen_fields(fields_to_write(table, files, decoded, own), own, records.left_out);
  const auto written = fields.empty() ? nullptr : open(fields);
  records.reader =
      make_record_reader(shards, std::move(chain), kept.columns, written, {kRecordColumn}, options.budget);
  return records;
}

// ---- images

// Gives every image the same class, so that none needs one.
class AnyClass : public Transform {
 public:
  explicit AnyClass(std::string name) : name_(std::move(name)) {}

  std::string text() const override { return "any_class 1"; }
  std::vector<BlockField> reads() const override { return {{"class", ValueType::kBytes, 1}}; }
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override { return input; }
  void apply(const BlockPlace&, ColumnBlock& block) const override {
    auto& classes = block.column("class").as<std::string_view>();
    std::fill(classes.begin(), classes.end(), std::string_view(name_));
  }

 private:
  std::string name_;
};

// Images to predict may lie in one folder per class, or simply in a folder.
Shards open_image_folders(const std::vector<std::string>& files) {
  Shards shards;
  for (const std::string& pattern : files)
    for (const std::string& path : match_files(pattern)) {
      if (!fs::is_directory(path))
        throw UserError("{} is a file; name the folder that the images lie in", path);
      const bool nested = std::any_of(
          fs::directory_iterator(path), fs::directory_iterator(), [](const fs::directory_entry& entry) {
            return entry.is_directory() && !entry.path().filename().string().starts_with('.');
          });
      if (!nested) {
        shards.push_back(open_folder(path, {".jpg", ".jpeg", ".png"}));
        continue;
      }
      for (auto& shard : open_class_folders({path})) shards.push_back(std::move(shard));
    }
  return shards;
}

// The path of every image in folders; asked of a shard, each would cost a look through its list.
RecordPlace places_of(const std::shared_ptr<const ShardSet>& shards) {
  using Names = std::unordered_map<int64_t, std::string>;
  auto names = std::make_shared<std::vector<Names>>();
  for (size_t i = 0; i < shards->manifest().shards().size(); ++i) {
    Names& of_shard = names->emplace_back();
    for (const FolderFile& file : folder_files(shards->decoder(i).bytes()))
      if (file.bytes > 0)
        of_shard[file.offset] = (fs::path(shards->manifest().shards()[i].name) / file.name).string();
  }
  return [names, shards](int64_t record) {
    const DataManifest::Place place = shards->manifest().locate(shards->original(record));
    const auto offset =
        static_cast<int64_t>(shards->index(place.shard).offsets[static_cast<size_t>(place.record)]);
    return names->at(place.shard).at(offset);
  };
}

RecordsToPredict predict_images(const DataOptions& options, const std::string& constants,
                                const std::vector<std::string>& files, const OwnColumns& own) {
  ImageDataOptions images = image_options(options);
  images.budget = options.eval_budget;
  auto format = make_format(images.tar ? "tar" : "images", {{}, {}, images.bad});
  Shards shards;
  if (images.tar)
    for (const std::string& path : expand_files(files, format->suffix()))
      shards.push_back(open_shard(path, {}));
  else
    shards = open_image_folders(files);
  const auto set = std::make_shared<ShardSet>(
      std::move(format), std::move(shards),
      ShardSetOptions{.threads = images.threads, .most_bad = images.most_bad, .progress = images.progress});
  warn_of_bad_records(*set);
  const std::vector<std::string> classes = classes_of_text(constants);
  const auto source = open_image_source(images, {set, classes});
  Transforms chain{std::make_shared<AnyClass>(classes.empty() ? "0" : classes[0])};
  chain.insert(chain.end(), source->transforms().begin(), source->transforms().end());
  const std::vector<std::string> names =
      own.names.empty() ? std::vector<std::string>{kRecordColumn, kPlaceColumn} : own.names;
  return {make_record_reader(set, std::move(chain), source->columns(), nullptr, names, options.budget,
                             images.tar ? RecordPlace{} : places_of(set))};
}

// ---- rows of tokens

std::shared_ptr<const Source> open_plain_rows(const DataOptions& options,
                                              const std::vector<std::string>& files) {
  if (options.format == Kind::kText)
    return open_text_files({.seq = options.seq, .budget = options.eval_budget, .progress = options.progress},
                           files);
  if (options.format == Kind::kTokenized) {
    DataOptions other = options;
    other.budget = options.eval_budget;
    std::vector<std::string> notes;
    return open_tokenized_files(other, options.tokenized.format, files, notes);
  }
  CorpusOptions corpus = corpus_options(options);
  corpus.budget = options.eval_budget;
  return open_corpus(corpus, files);
}

std::shared_ptr<const Source> open_rows_of(const DataOptions& options,
                                           const std::vector<std::string>& files) {
  auto rows = open_plain_rows(options, files);
  if (!options.masking) return rows;
  return std::make_shared<MaskedTokens>(std::move(rows), *options.masking, MaskedTokens::Epochs::kAllAlike);
}

void require_files(const DataOptions& options, const std::vector<std::string>& files) {
  if (files.empty()) throw UserError("no data files are given");
  if (options.format != Kind::kTable && options.format != Kind::kText && options.format != Kind::kTokens &&
      options.format != Kind::kTokenized && !is_images(options))
    throw UserError("the model was trained on generated records; say what the files are with --format");
}

}  // namespace

std::shared_ptr<const Source> open_to_evaluate(const DataOptions& options, const std::string& constants,
                                               const std::vector<std::string>& files) {
  require_files(options, files);
  if (options.format == DataOptions::Format::kTable) {
    const TableOptions table = kept_options(options, constants);
    return open_table(table, restore_table(table, constants, files), files).source;
  }
  if (!is_images(options)) return open_rows_of(options, files);
  ImageDataOptions images = image_options(options);
  images.budget = options.eval_budget;
  return open_image_source(images, open_image_shards(images, files, classes_of_text(constants)));
}

RecordsToPredict open_to_predict(const DataOptions& options, const std::string& constants,
                                 const std::vector<std::string>& files, const OwnColumns& own) {
  require_files(options, files);
  if (options.format == DataOptions::Format::kTable) return predict_table(options, constants, files, own);
  if (is_images(options)) return predict_images(options, constants, files, own);
  const std::vector<std::string> names =
      own.names.empty() ? std::vector<std::string>{kRecordColumn} : own.names;
  return {make_record_reader(open_rows_of(options, files), names)};
}

std::vector<std::string> kept_classes(const DataOptions& options, const std::string& constants) {
  return is_images(options) ? classes_of_text(constants) : std::vector<std::string>{};
}

}  // namespace lockstep
