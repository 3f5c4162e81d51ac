#include "cli/bench_tokenize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

struct BenchTokenize {
  std::string tokenizer, texts, dump;
  int threads = 1;
  double seconds = 2;
  bool special = true;
};

// Texts one after the other, each with its length in front, four bytes.
std::vector<std::string_view> frames(std::string_view bytes, const std::string& path) {
  std::vector<std::string_view> texts;
  while (!bytes.empty()) {
    uint32_t size = 0;
    if (bytes.size() < 4) throw UserError("{}: ends within a length", path);
    std::memcpy(&size, bytes.data(), 4);
    bytes.remove_prefix(4);
    if (bytes.size() < size) throw UserError("{}: ends within a text", path);
    texts.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return texts;
}

// Of each text: how many ids, the ids, how many bytes they decode to, the bytes.
void dump(const Tokenizer& tokenizer, const std::vector<std::vector<int32_t>>& ids, const std::string& path) {
  std::string out;
  const auto number = [&](size_t value) {
    const auto bits = static_cast<uint32_t>(value);
    out.append(reinterpret_cast<const char*>(&bits), 4);
  };
  for (const std::vector<int32_t>& text : ids) {
    number(text.size());
    out.append(reinterpret_cast<const char*>(text.data()), text.size() * 4);
    const std::string decoded = tokenizer.decode(text, true);
    number(decoded.size());
    out += decoded;
  }
  write_file(path, out);
}

void run_bench_tokenize(const BenchTokenize& options) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  auto start = Clock::now();
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::open(options.tokenizer);
  const double opened = since(start);
  const std::string bytes = read_file(options.texts, int64_t{1} << 34);
  const std::vector<std::string_view> texts = frames(bytes, options.texts);
  ThreadPool pool(options.threads);
  std::vector<std::vector<int32_t>> ids = tokenizer->encode_batch(texts, options.special, pool);
  if (!options.dump.empty()) return dump(*tokenizer, ids, options.dump);

  size_t total = 0, tokens = 0;
  for (const std::string_view text : texts) total += text.size();
  for (const auto& text : ids) tokens += text.size();
  double best = 1e30;
  start = Clock::now();
  do {
    ids.clear();
    const auto turn = Clock::now();
    ids = tokenizer->encode_batch(texts, options.special, pool);
    best = std::min(best, since(turn));
  } while (since(start) < options.seconds);
  std::cout << fmt::format(
      "{{\"megabytes\":{:.3f},\"tokens\":{},\"open_seconds\":{:.4f},\"mb_per_s\":{:.3f}}}\n", total / 1e6,
      tokens, opened, total / 1e6 / best);
}

}  // namespace

void add_bench_tokenize_command(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("tokenize", "megabytes of text that become ids in a second");
  auto options = std::make_shared<BenchTokenize>();
  command
      ->add_option("tokenizer", options->tokenizer,
                   "tokenizer.json, a SentencePiece .model, or a folder with one")
      ->required();
  command->add_option("texts", options->texts, "file of texts, each with its length in front (four bytes)")
      ->required();
  command->add_option("--threads", options->threads, "threads that encode")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "how long to measure")->capture_default_str();
  command->add_flag("!--no-special", options->special, "without special tokens around each text");
  command->add_option("--dump", options->dump,
                      "write ids and what they decode to into this file instead of measuring");
  command->callback([options] { run_bench_tokenize(*options); });
}

}  // namespace lockstep
