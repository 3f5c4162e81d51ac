#include "data/fraud_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/error.h"
#include "data/fraud.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader =
    "time,card,merchant,category,country,home_country,channel,hour,amount,seconds_since_last,previous_amount,"
    "mean_amount,count_1h,count_24h,known_merchant,is_fraud\n";
constexpr size_t kBufferBytes = size_t{1} << 20;

class LineWriter {
 public:
  explicit LineWriter(std::string& out) : out_(out) {}

  void text(std::string_view text) { out_.append(text); }
  void comma() { out_.push_back(','); }
  void number(int64_t value, int width = 0) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    for (auto missing = width - (end - digits.data()); missing > 0; --missing) out_.push_back('0');
    out_.append(digits.data(), static_cast<size_t>(end - digits.data()));
  }
  void money(int64_t cents) {
    number(cents / 100);
    out_.push_back('.');
    number(cents % 100, 2);
  }
  void optional_money(bool present, int64_t cents) {
    if (present) money(cents);
    comma();
  }
  // The generator covers fewer days than 2025 has.
  void time(int64_t seconds) {
    constexpr std::array<int, 12> kMonthDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = seconds / 86400;
    size_t month = 0;
    while (month < 11 && day >= kMonthDays[month]) day -= kMonthDays[month++];
    text("2025-");
    number(static_cast<int64_t>(month) + 1, 2);
    out_.push_back('-');
    number(day + 1, 2);
    out_.push_back('T');
    number(seconds / 3600 % 24, 2);
    out_.push_back(':');
    number(seconds / 60 % 60, 2);
    out_.push_back(':');
    number(seconds % 60, 2);
  }

 private:
  std::string& out_;
};

void append_row(const fraud::World& world, const fraud::Transaction& t, std::string& out) {
  LineWriter line(out);
  const fraud::Merchant& merchant = world.merchant(t.merchant);
  line.time(t.time);
  line.text(",k");
  line.number(t.card, 6);
  line.text(",m");
  line.number(t.merchant, 5);
  line.comma();
  line.text(fraud::categories()[merchant.category].name);
  line.comma();
  line.text(fraud::countries()[t.country].code);
  line.comma();
  line.text(fraud::countries()[world.card(t.card).home].code);
  line.comma();
  line.text(fraud::name_of(t.channel));
  line.comma();
  line.number(t.time / 3600 % 24);
  line.comma();
  line.money(t.cents);
  line.comma();
  if (!t.first) line.number(t.seconds_since_last);
  line.comma();
  line.optional_money(!t.first, t.previous_cents);
  line.optional_money(!t.first, t.mean_cents);
  line.number(t.last_hour);
  line.comma();
  line.number(t.last_day);
  line.comma();
  line.number(t.known_merchant);
  line.comma();
  line.number(t.fraud);
  line.text("\n");
}

struct ShardPlan {
  std::string name;
  int64_t rows;
};

int eval_shards(const FraudOptions& options) { return std::max(options.shards / 4, 1); }

std::vector<ShardPlan> plan_shards(const FraudOptions& options) {
  std::vector<ShardPlan> plan;
  const auto cut = [&](std::string_view part, int64_t rows, int shards) {
    for (int64_t i = 0; i < shards; ++i)
      plan.push_back({fmt::format("{}-{:05}-of-{:05}.csv", part, i, shards),
                      rows * (i + 1) / shards - rows * i / shards});
  };
  cut("train", options.rows - options.eval_rows, options.shards);
  cut("eval", options.eval_rows, eval_shards(options));
  return plan;
}

// Makes the rows of all shards in order. begin(name) and end(name) stand around each shard; write takes its
// text piece by piece. Returns the number of frauds.
template <typename Begin, typename Write, typename End>
int64_t generate(const FraudOptions& options, const Begin& begin, const Write& write, const End& end) {
  fraud::Generator generator(options.seed, options.rows);
  int64_t frauds = 0;
  std::string text;
  for (const ShardPlan& shard : plan_shards(options)) {
    begin(shard.name);
    text = kHeader;
    for (int64_t i = 0; i < shard.rows; ++i) {
      const fraud::Transaction transaction = generator.next();
      frauds += transaction.fraud;
      append_row(generator.world(), transaction, text);
      if (text.size() < kBufferBytes) continue;
      write(text);
      text.clear();
    }
    write(text);
    end(shard.name);
  }
  return frauds;
}

void clear_folder(const std::string& folder, bool overwrite) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw UserError("cannot make the folder {}: {}", folder, failure.message());
  static const std::regex kShardName("(train|eval)-\\d{5}-of-\\d{5}\\.csv(\\.partial)?");
  std::vector<fs::path> earlier;
  for (const auto& entry : fs::directory_iterator(folder))
    if (std::regex_match(entry.path().filename().string(), kShardName)) earlier.push_back(entry.path());
  if (!earlier.empty() && !overwrite)
    throw UserError("{} already holds {}; choose another folder, or overwrite its shards with --overwrite",
                    folder, earlier[0].filename().string());
  for (const fs::path& path : earlier) fs::remove(path);
}

}  // namespace

void check_fraud_options(const FraudOptions& options) {
  if (options.shards < 1 || options.shards > 99999)
    throw UserError("{} shards; use 1 to 99999", options.shards);
  if (options.rows - options.eval_rows < options.shards || options.eval_rows < eval_shards(options))
    throw UserError("{} rows of which {} are held out are too few for {} shards; ask for more rows",
                    options.rows, options.eval_rows, options.shards);
}

FraudReport write_fraud(const FraudOptions& options, const std::string& folder, bool overwrite) {
  check_fraud_options(options);
  clear_folder(folder, overwrite);
  FraudReport report{options.rows - options.eval_rows, options.eval_rows, 0, 0, {}};
  std::ofstream out;
  std::string path;
  report.frauds = generate(
      options,
      [&](const std::string& name) {
        path = (fs::path(folder) / name).string();
        out.open(path + ".partial", std::ios::binary | std::ios::trunc);
      },
      [&](const std::string& text) {
        out.write(text.data(), static_cast<std::streamsize>(text.size()));
        report.bytes += static_cast<int64_t>(text.size());
      },
      [&](const std::string&) {
        out.close();
        if (!out) throw UserError("cannot write {}.partial; is the disk full?", path);
        fs::rename(path + ".partial", path);
        report.files.push_back(path);
      });
  return report;
}

FraudShards make_fraud(const FraudOptions& options) {
  check_fraud_options(options);
  FraudShards shards;
  CsvShard current;
  generate(
      options,
      [&](const std::string& name) {
        current = {name, std::string()};
      },
      [&](const std::string& text) { *current.text += text; },
      [&](const std::string& name) {
        (name.starts_with("train") ? shards.train : shards.eval).push_back(std::move(current));
      });
  return shards;
}

}  // namespace lockstep
