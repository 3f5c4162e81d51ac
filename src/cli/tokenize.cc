// lockstep tokenize: text files and columns of tables as corpora of tokens, with the tokenizer of a model's
// folder.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/cores.h"
#include "base/error.h"
#include "chat/row_tokenizer.h"
#include "cli/cli.h"
#include "cli/index_line.h"
#include "data/bytes/files.h"
#include "data/shards/formats.h"
#include "data/tokenize/corpus_files.h"
#include "job/numbers.h"

namespace lockstep {
namespace {

struct TokenizeCommand {
  std::string tokenizer, out, format, column, documents, eos;
  std::vector<std::string> files;
  std::string shard_size;
  int width = 0, threads = 0;
  bool plain = false, overwrite = false;
};

constexpr auto kTables = std::to_array<std::string_view>({"jsonl", "parquet", "csv", "tfrecord", "block"});

// By the ending of the first file; text may be called anything.
std::string format_of(const std::vector<std::string>& files) {
  const std::vector<std::string> paths = expand_files(files);
  if (paths.empty()) throw UserError("no files are given");
  for (const std::string_view name : kTables)
    if (without_compression(paths[0]).ends_with(make_format(name, {})->suffix())) return std::string(name);
  return "text";
}

std::optional<int32_t> eos_of(const TokenizeCommand& command, const Tokenizer& tokenizer) {
  if (command.eos == "none") return {};
  if (command.eos.empty()) {
    // A frame that ends texts needs no more.
    if (tokenizer.eos() || (!command.plain && !text_frame(tokenizer).after.empty())) return tokenizer.eos();
    throw UserError(
        "{} does not say which token ends a text; name it, as in --eos '<|endoftext|>', or give --eos none",
        command.tokenizer);
  }
  if (const auto id = tokenizer.id_of(command.eos)) return id;
  throw UserError("--eos '{}' is not in the vocabulary of {}", command.eos, command.tokenizer);
}

DocumentInput input_of(const TokenizeCommand& command) {
  DocumentInput input;
  input.files = command.files;
  input.format = command.format.empty() ? format_of(command.files) : command.format;
  if (input.is_text()) {
    if (!command.column.empty()) throw UserError("--column is for tables; text files have no columns");
    const std::string& kind = command.documents;
    input.documents = kind == "line"    ? TextDocuments::kLine
                      : kind == "block" ? TextDocuments::kBlock
                                        : TextDocuments::kFile;
  } else {
    if (command.column.empty())
      throw UserError("name the column of {} that holds the text, as in --column text", input.format);
    if (!command.documents.empty())
      throw UserError("--documents is for text files; a record of a table is one");
    input.column = command.column;
  }
  return input;
}

TokenFileLayout layout_of(const TokenizeCommand& command, const Tokenizer& tokenizer) {
  TokenFileLayout layout = layout_of_tokens(tokenizer.vocab_size(), false);
  if (command.width == 2 && layout.width == 4)
    throw UserError("--bytes 2 does not hold the {} tokens of {}; write 4", tokenizer.vocab_size(),
                    command.tokenizer);
  if (command.width != 0) layout.width = command.width;
  return layout;
}

int64_t shard_bytes_of(const TokenizeCommand& command) {
  if (command.shard_size.empty()) return 0;
  const auto bytes = read_bytes(command.shard_size);
  if (!bytes || *bytes < 4096)
    throw UserError("--shard-size '{}' is no size of at least 4096 bytes; write as in 1GiB",
                    command.shard_size);
  return *bytes;
}

void run_tokenize(const TokenizeCommand& command) {
  const auto start = std::chrono::steady_clock::now();
  TokenizeOptions options;
  options.tokenizer = Tokenizer::open(command.tokenizer);
  options.input = input_of(command);
  options.special_tokens = !command.plain;
  options.eos = eos_of(command, *options.tokenizer);
  options.threads = command.threads > 0 ? command.threads : available_cores().usable;
  IndexLine line("tokenizing");
  options.progress = [&](int64_t done, int64_t all) { line.show(std::min(done, all), all); };
  const int64_t shard_bytes = shard_bytes_of(command);
  CorpusWriter writer(command.out, layout_of(command, *options.tokenizer), shard_bytes, command.overwrite);
  const DocumentSet documents(options);
  const TokenizeReport report = documents.tokenize(writer);
  line.finish();
  writer.finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string files = writer.files().size() == 1
                                ? writer.files()[0]
                                : fmt::format("{} to {}", writer.files().front(), writer.files().back());
  std::cout << fmt::format(
      "{}: {} documents, {} tokens, {:.1f} MB of text in {:.1f} MB, {:.2f} s, {:.1f} MB/s\n", files,
      report.documents, report.tokens, static_cast<double>(report.bytes) / 1e6,
      static_cast<double>(writer.bytes()) / 1e6, seconds, static_cast<double>(report.bytes) / 1e6 / seconds);
}

}  // namespace

void add_tokenize_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "text as a corpus of tokens, with a model's tokenizer");
  auto given = std::make_shared<TokenizeCommand>();
  command->add_option("files", given->files, "paths, folders or patterns with * and ?; .gz and .zst too")
      ->required();
  command->add_option("--tokenizer", given->tokenizer, "a model's folder, a tokenizer.json or a .model file")
      ->required();
  command->add_option("--out", given->out, "the file to write, for data.train.format: tokens")->required();
  command->add_option("--format", given->format, "of the files; by default what the ending says, or text")
      ->check(CLI::IsMember({"text", "jsonl", "parquet", "csv", "tfrecord", "block"}));
  command->add_option("--column", given->column,
                      "of tables: the one with the text; each record is a document");
  command
      ->add_option("--documents", given->documents,
                   "of text files: what a document is; block: lines up to a blank one (default: file)")
      ->check(CLI::IsMember({"file", "line", "block"}));
  command->add_option(
      "--eos", given->eos,
      "the token that ends each document, or none (default: the one that the tokenizer names)");
  command->add_flag("--plain", given->plain, "leave out what the tokenizer frames a text with, as <s>");
  command->add_option("--bytes", given->width, "of a token: 2 or 4 (default: as few as the vocabulary needs)")
      ->check(CLI::IsMember({2, 4}));
  command->add_option("--shard-size", given->shard_size,
                      "begin another file, NAME-00001, when one has this size, as 1GiB (default: one file)");
  command
      ->add_option("--threads", given->threads, "to tokenize with; changes no byte (default: all processors)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--overwrite", given->overwrite, "replace files that are there");
  command->callback([given] { run_tokenize(*given); });
}

}  // namespace lockstep
