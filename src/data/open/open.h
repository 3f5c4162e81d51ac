// From what a job says about its data to the sources of a run: the one door through which the trainer gets
// records.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/format/format.h"
#include "data/pixels/pixels.h"
#include "data/select/table_selection.h"
#include "data/shards/shard_set.h"
#include "data/source/source.h"
#include "data/tokens/masked_tokens.h"
#include "data/transform/table_encoding.h"
#include "data/transform/transform.h"

namespace lockstep {

struct TableReport;
class RowTokenizer;

// Documents of text and conversations that a language model learns: data/open/tokenized.h.
struct TokenizedOptions {
  std::string tokenizer;  // a folder or file
  std::string format;     // "text", or that of a table; empty: there is nothing to tokenize
  std::string text, messages, prompt, response;  // columns
  std::string chat_template;
  bool loss_on_all = false;
  int text_documents = 0;  // TextDocuments
};

struct PartOptions {
  std::vector<std::string> files;  // of tables and text: paths, folders, patterns
  int64_t samples = 0;             // of generated data
};

struct DataOptions {
  enum class Format : uint8_t {
    kTable,  // files of a format with named columns: data/table/table.h
    kText,
    kTokens,         // corpora of tokens: data/open/corpus.h
    kTokenized,      // documents of text or conversations, tokenized once and kept: data/open/tokenized.h
    kImages,         // folders of images by class: data/open/image_data.h
    kTar,            // tar shards of images: likewise
    kFraud,          // generated card transactions, as data/synthetic/fraud_shards.h makes them
    kPatternTokens,  // generated sequences to continue
    kPatternText,    // generated sequences to classify
    kPatternImages,  // generated images to classify
  };
  Format format = Format::kTable;
  std::string table = "csv";    // which one, as data/format/format.h names it
  std::string eval_table = {};  // that of the files to evaluate on; empty: the same
  PartOptions train;
  PartOptions eval;       // empty: none, or what is held out of train
  double hold_out = 0;    // the last share of the training records, when eval is empty
  bool evaluates = true;  // false: generated transactions to evaluate on are not made
  uint64_t seed = 0;      // of generated data

  BadRecords bad = BadRecords::kStop;  // of files, less text
  double most_bad = 0;                 // share of the records that may be left out

  // Of tables.
  std::map<std::string, std::string> settings = {};  // of the format
  std::shared_ptr<const MissingTexts> missing = {};  // null: the usual ones
  bool looks_through = false;  // records are looked through before any is used: data/table/look_through.h
  std::vector<TransformOptions> transforms = {};
  std::string filter = {};  // data/select/filter.h; empty: all records
  std::optional<TableSubsample> subsample = {};
  std::string split_column = {};  // of tables; empty: none
  double split_eval = 0;          // share of its entities to evaluate on
  bool in_parts = false;          // the entries of train.files are read as parts of their own

  EncodingOptions encoding;             // of tables; buckets also for generated transactions
  int threads = 1;                      // to index and fit files with
  int64_t budget = int64_t{512} << 20;  // bytes of training records in memory, of files
  int64_t eval_budget = int64_t{64} << 20;
  int64_t seq = 0, vocab = 0, classes = 0, image = 0;
  bool padded = false;
  bool best_fit = false, separate = false;   // of corpora: how documents are packed, and kept apart
  std::optional<TokenMasking> masking = {};  // of rows of tokens, for masked language modelling
  Augmentation augment;                      // of training images
  int64_t resize = 0;                        // of images that are not cut at random: data/open/image_data.h
  bool stretch = false;                      // of images that are not cut at random: the whole one is taken
  Normalisation colors;                      // of images
  TokenizedOptions tokenized = {};
  // Of text that is classified; null: its bytes are tokens.
  std::shared_ptr<const RowTokenizer> text_tokenizer = {};
  std::string text_column = {};       // of tables for the encoder; empty: the table is for others
  IndexProgress progress = {};        // while files are indexed
  IndexFolder index_folder = {};      // of files; where it takes no more, no rows are kept either
  bool cache = false;                 // of tables: rows are kept (data/cache/row_cache.h)
  std::string cache_folder = {};      // empty: the index folder
  IndexProgress cache_progress = {};  // while they are written
};

struct Data {
  std::shared_ptr<const Source> train;
  std::shared_ptr<const Source> eval;  // null: there is nothing to evaluate on
  // How columns become inputs, for tables: stored with a run, so that new records can be encoded alike.
  std::string encoding = {};
  std::vector<int64_t> parts = {};  // records of each entry of train.files, where they are read in parts
  Transforms transforms = {};  // of tables in files: from their columns to the model's, the encoding last
  std::shared_ptr<const TableReport> report = {};  // of tables; data/table/table_report.h
  // Of tables for a tabular model: what the label means, and in a sentence how that was decided.
  std::optional<LabelEncoding> labels = {};
  std::string label_decision = {};
  std::vector<std::string> notes = {};  // what was tokenized, cut and left out, for people
};

Data open_data(const DataOptions& options);

}  // namespace lockstep
