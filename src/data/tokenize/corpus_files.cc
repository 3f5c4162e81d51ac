#include "data/tokenize/corpus_files.h"

#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"
#include "data/bytes/files.h"
#include "data/bytes/kept_file.h"
#include "data/tokens/token_corpus.h"

namespace lockstep {

namespace fs = std::filesystem;

CorpusWriter::CorpusWriter(std::string path, TokenFileLayout layout, int64_t shard_bytes, bool replace)
    : path_(std::move(path)), layout_(layout), shard_bytes_(shard_bytes), replace_(replace) {
  open_shard();
}

void CorpusWriter::open_shard() {
  std::string path = path_;
  if (shard_bytes_ > 0) {
    const fs::path whole(path_);
    path = (whole.parent_path() /
            fmt::format("{}-{:05}{}", whole.stem().string(), files_.size(), whole.extension().string()))
               .string();
  }
  if (!replace_ && fs::exists(path))
    throw UserError("{} is there already; give --overwrite to replace it", path);
  shard_ = std::make_unique<TokenFileWriter>(path, layout_);
  files_.push_back(std::move(path));
}

void CorpusWriter::append(std::span<const int32_t> ids, std::span<const uint8_t> counts) {
  if (shard_bytes_ > 0 && shard_->bytes() >= shard_bytes_ && shard_->is_between_documents()) {
    bytes_ += shard_->finish();
    open_shard();
  }
  shard_->append(ids, counts);
}

CorpusWriter::~CorpusWriter() {
  if (finished_) return;
  std::error_code ignored;
  for (size_t i = 0; i + 1 < files_.size(); ++i) fs::remove(files_[i], ignored);
}

void CorpusWriter::end_document() { shard_->end_document(); }

void CorpusWriter::finish() {
  bytes_ += shard_->finish();
  finished_ = true;
}

namespace {

std::string name_of_key(const DocumentSet& documents, const TokenizeOptions& options, TokenFileLayout layout,
                        const std::string& key) {
  std::string frame = fmt::format("special {} eos {} longest {}", options.special_tokens,
                                  options.eos.value_or(-1), options.longest);
  if (options.bad == BadRecords::kSkip) frame += " skip";
  return sha256(fmt::format("corpus 1\n{}\n{}\n{}\n{} {}\n{}", documents.fingerprint(), options.input.text(),
                            frame, layout.width, layout.marked, key))
      .substr(0, 32);
}

TokenizeReport report_of(const ByteSource& file) {
  const TokenCorpus corpus(file);
  return {.documents = corpus.documents(),
          .tokens = corpus.tokens(),
          .cut = corpus.cut(),
          .dropped = corpus.dropped()};
}

// Makes the corpus under this name.
void build(const DocumentSet& documents, TokenFileLayout layout, const std::string& path) {
  struct Sink : TokenSink {
    explicit Sink(const std::string& path, TokenFileLayout layout) : file(path, layout) {}
    void append(std::span<const int32_t> ids, std::span<const uint8_t> counts) override {
      file.append(ids, counts);
    }
    void end_document() override { file.end_document(); }
    TokenFileWriter file;
  } sink(path, layout);
  const TokenizeReport report = documents.tokenize(sink);
  sink.file.set_left_out(report.cut, report.dropped);
  sink.file.finish();
}

// One that was left half, or damaged, is made again; its content is checked when it is indexed.
std::unique_ptr<ByteSource> open_kept(const std::string& path) {
  if (!fs::exists(path)) return nullptr;
  try {
    auto file = open_file(path);
    report_of(*file);
    return file;
  } catch (const UserError&) {
    return nullptr;
  }
}

}  // namespace

KeptCorpus keep_corpus(const TokenizeOptions& options, TokenFileLayout layout, const std::string& key) {
  const DocumentSet documents(options);
  const std::string first = expand_files(options.input.files).front();
  const std::string folder = options.index_folder.of(first);
  const std::string path =
      (fs::path(folder) / ("tokens-" + name_of_key(documents, options, layout, key) + ".bin")).string();
  KeptCorpus kept;
  kept.tokens = open_kept(path);
  if (!kept.tokens && !options.index_folder.writes) {
    std::string pattern = (fs::temp_directory_path() / "lockstep-tokens-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw UserError("cannot make a folder as {}", pattern);
    const std::string file = (fs::path(pattern) / "tokens.bin").string();
    try {
      build(documents, layout, file);
      kept.tokens = open_file(file);
    } catch (...) {
      fs::remove_all(pattern);
      throw;
    }
    // The open file stays readable.
    fs::remove_all(pattern);
    kept.built = true;
  } else if (!kept.tokens) {
    if (!options.index_folder.prepare(first))
      throw UserError("{} cannot be written; name a folder for the tokens as data.index_folder", folder);
    const FileLock lock(path + ".lock");
    kept.tokens = open_kept(path);
    if (!kept.tokens) {
      build(documents, layout, path);
      kept.tokens = open_file(path);
      kept.built = true;
    }
  }
  kept.report = report_of(*kept.tokens);
  return kept;
}

}  // namespace lockstep
