#include "data/synthetic/fraud_shards.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <regex>

#include "base/error.h"
#include "base/new_file.h"
#include "data/synthetic/fraud.h"
#include "data/synthetic/fraud_writer.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kUsualRowBytes = 96;  // of CSV

struct ShardPlan {
  std::string name;
  int64_t rows;
};

int eval_shards(const FraudOptions& options) { return std::max(options.shards / 4, 1); }

std::vector<ShardPlan> plan_shards(const FraudOptions& options) {
  std::vector<ShardPlan> plan;
  const auto cut = [&](std::string_view part, int64_t rows, int shards) {
    for (int64_t i = 0; i < shards; ++i)
      plan.push_back({fmt::format("{}-{:05}-of-{:05}.{}", part, i, shards, options.format),
                      rows * (i + 1) / shards - rows * i / shards});
  };
  cut("train", options.rows - options.eval_rows, options.shards);
  if (options.makes_eval) cut("eval", options.eval_rows, eval_shards(options));
  return plan;
}

// Makes the rows of all shards in order. begin(name) and end(name) stand around each shard; write takes its
// text piece by piece, whenever there are `buffer` bytes of it, and leaves none. Returns the number of
// frauds.
template <typename Begin, typename Write, typename End>
int64_t generate(const FraudOptions& options, size_t buffer, const Begin& begin, const Write& write,
                 const End& end) {
  fraud::Generator generator(options.seed, options.rows);
  const auto writer = make_fraud_writer(options.format);
  int64_t frauds = 0;
  FraudRow row;
  std::string text;
  for (const ShardPlan& shard : plan_shards(options)) {
    begin(shard, text);
    writer->begin(text);
    for (int64_t i = 0; i < shard.rows; ++i) {
      const fraud::Transaction transaction = generator.next();
      frauds += transaction.fraud;
      row.set(generator.world(), transaction);
      writer->add(row, text);
      if (text.size() >= buffer) write(text);
    }
    writer->end(text);
    write(text);
    end(shard);
  }
  return frauds;
}

void clear_folder(const std::string& folder, const std::string& format, bool overwrite) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw UserError("cannot make the folder {}: {}", folder, failure.message());
  const std::regex shard_name("(train|eval)-\\d{5}-of-\\d{5}\\." + format + "(\\.[0-9a-f]{16}\\.partial)?");
  std::vector<fs::path> earlier;
  for (const auto& entry : fs::directory_iterator(folder))
    if (std::regex_match(entry.path().filename().string(), shard_name)) earlier.push_back(entry.path());
  if (!earlier.empty() && !overwrite)
    throw UserError("{} already holds {}; choose another folder, or overwrite its shards with --overwrite",
                    folder, earlier[0].filename().string());
  for (const fs::path& path : earlier) fs::remove(path);
}

}  // namespace

void check_fraud_options(const FraudOptions& options) {
  make_fraud_writer(options.format);
  if (options.shards < 1 || options.shards > 99999)
    throw UserError("{} shards; use 1 to 99999", options.shards);
  if (options.rows - options.eval_rows < options.shards || options.eval_rows < eval_shards(options))
    throw UserError("{} rows of which {} are held out are too few for {} shards; ask for more rows",
                    options.rows, options.eval_rows, options.shards);
}

FraudReport write_fraud(const FraudOptions& options, const std::string& folder, bool overwrite) {
  check_fraud_options(options);
  clear_folder(folder, options.format, overwrite);
  FraudReport report{options.rows - options.eval_rows, options.eval_rows, 0, 0, {}};
  std::optional<NewFile> out;
  report.frauds = generate(
      options, kBufferBytes,
      [&](const ShardPlan& shard, std::string&) { out.emplace((fs::path(folder) / shard.name).string()); },
      [&](std::string& text) {
        out->write(text);
        report.bytes += static_cast<int64_t>(text.size());
        text.clear();
      },
      [&](const ShardPlan&) {
        out->finish();
        report.files.push_back(out->path());
      });
  return report;
}

FraudShards make_fraud(const FraudOptions& options) {
  check_fraud_options(options);
  FraudShards shards;
  std::shared_ptr<const std::string> whole;
  generate(
      options, std::numeric_limits<size_t>::max(),
      [&](const ShardPlan& shard, std::string& text) {
        text.reserve(static_cast<size_t>(shard.rows + 1) * kUsualRowBytes);
      },
      [&](std::string& text) {
        whole = std::make_shared<const std::string>(std::move(text));
        text.clear();
      },
      [&](const ShardPlan& shard) {
        (shard.name.starts_with("train") ? shards.train : shards.eval).push_back({shard.name, whole});
      });
  return shards;
}

}  // namespace lockstep
