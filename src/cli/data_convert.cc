#include "cli/data_convert.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "data/convert/convert.h"
#include "data/format/format.h"
#include "data/shards/formats.h"

namespace lockstep {
namespace {

void run_convert(const ConvertOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const ConvertReport report = convert_files(options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << fmt::format("{}: {} records in {} files, {:.1f} MB from {:.1f} MB, {:.2f} s\n", options.folder,
                           report.records, report.files.size(),
                           static_cast<double>(report.bytes_written) / 1e6,
                           static_cast<double>(report.bytes_read) / 1e6, seconds);
}

}  // namespace

void add_data_convert(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("convert", "write data files in another format, or text as tokens, file by file");
  auto options = std::make_shared<ConvertOptions>();
  command->add_option("source", options->files, "paths, folders or patterns with * and ?")->required();
  command->add_option("--to", options->to, "the format to write")
      ->check(CLI::IsMember(converted_formats()))
      ->capture_default_str();
  command->add_option("--from", options->from, "the format to read; by default what the ending says")
      ->check(CLI::IsMember(format_names()));
  command->add_option("--out", options->folder, "folder for the new files")->required();
  command->add_option("--column", options->column, "of a table that becomes tokens: the one with the text");
  command->add_option("--text", options->text, "columns to keep as text, though they look like numbers");
  command->add_option("--without", options->without, "columns to leave out");
  auto compression = std::make_shared<std::string>("zstd");
  command->add_option("--compression", *compression, "of block and parquet files")
      ->check(CLI::IsMember({"none", "snappy", "gzip", "zstd", "lz4"}))
      ->capture_default_str();
  command->callback([options, compression] {
    for (const Codec choice : {Codec::kNone, Codec::kSnappy, Codec::kGzip, Codec::kZstd, Codec::kLz4})
      if (name_of(choice) == *compression) options->writer.compression = choice;
    run_convert(*options);
  });
}

}  // namespace lockstep
