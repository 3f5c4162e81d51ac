#include "data/synthetic/patterns.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/sha256.h"
#include "data/order/draws.h"
#include "data/order/order.h"

namespace lockstep {
namespace {

constexpr uint32_t kTokenStream = 14;
constexpr uint64_t kSuccessorStream = 0x7375636300;  // "succ"
// Of the three successors, each including those before it; the rest is any token.
constexpr std::array<double, 3> kUpTo{0.65, 0.85, 0.95};

}  // namespace

PatternTokens::PatternTokens(const PatternTokensOptions& options) : options_(options) {
  if (options.records < 1 || options.seq < 1 || options.vocab < 2)
    throw UserError("pattern_tokens: {} records of {} tokens from {}; use at least 1, 1 and 2",
                    options.records, options.seq, options.vocab);
  for (uint64_t i = 0; i < kUpTo.size(); ++i)
    successors_.emplace_back(options.seed, kSuccessorStream + i, options.vocab);
}

std::vector<Column> PatternTokens::columns() const {
  return {{"tokens", DType::kI32, {options_.seq}}, {"targets", DType::kI32, {options_.seq}}};
}

void PatternTokens::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  const uint64_t vocab = static_cast<uint64_t>(options_.vocab);
  for (size_t r = 0; r < records.size(); ++r) {
    const auto tokens = batch.record<int32_t>(0, static_cast<int64_t>(r));
    const auto targets = batch.record<int32_t>(1, static_cast<int64_t>(r));
    if (records[r] == kNoRecord) {
      std::fill(tokens.begin(), tokens.end(), 0);
      std::fill(targets.begin(), targets.end(), kIgnoredLabel);
      continue;
    }
    Draws draws(options_.seed, kTokenStream, static_cast<uint64_t>(options_.first + records[r]));
    int64_t token = draws.below(vocab);
    for (size_t t = 0; t < tokens.size(); ++t) {
      tokens[t] = static_cast<int32_t>(token);
      const double u = draws.uniform();
      const size_t choice =
          static_cast<size_t>(std::upper_bound(kUpTo.begin(), kUpTo.end(), u) - kUpTo.begin());
      token = choice < successors_.size() ? successors_[choice](token) : draws.below(vocab);
      targets[t] = static_cast<int32_t>(token);
    }
  }
}

std::string PatternTokens::fingerprint() const {
  return sha256(fmt::format("pattern_tokens 1\n{} {} {} {} {}\n", options_.records, options_.first,
                            options_.seq, options_.vocab, options_.seed));
}

std::string PatternTokens::describe(int64_t record) const {
  return fmt::format("pattern_tokens record {}", options_.first + record);
}

namespace {

constexpr uint32_t kTextStream = 11;
// How many tokens come from the favoured set beyond its fair share: the label shows in the whole, not in
// single tokens.
constexpr double kFavoured = 0.4;

}  // namespace

PatternText::PatternText(const PatternTextOptions& options) : options_(options) {
  if (options.classes < 2 || options.vocab < options.classes + 1 || options.seq < 2 || options.records < 1)
    throw UserError(
        "pattern_text: {} records of {} tokens from {} in {} classes; use at least 1, 2, classes + 1 and 2",
        options.records, options.seq, options.vocab, options.classes);
  sets_.resize(static_cast<size_t>(options.classes));
  const Permutation shuffled(options.seed, 0, options.vocab - 1);
  for (int64_t i = 0; i < options.vocab - 1; ++i)
    sets_[static_cast<size_t>(i % options.classes)].push_back(static_cast<int32_t>(1 + shuffled(i)));
}

std::vector<Column> PatternText::columns() const {
  const Shape positions{options_.seq};
  std::vector<Column> columns{
      {"tokens", DType::kI32, positions}, {"segments", DType::kI32, positions}, {"labels", DType::kI32, {}}};
  if (options_.padded) columns.push_back({"keys_visible", DType::kU8, positions});
  return columns;
}

int64_t PatternText::make(int64_t record, std::span<int32_t> tokens, int32_t& label) const {
  Draws draws(options_.seed, kTextStream, static_cast<uint64_t>(options_.first + record));
  const size_t favoured = draws.below(sets_.size());
  const int64_t half = options_.seq / 2;
  const int64_t length =
      options_.padded ? options_.seq - draws.below(static_cast<uint64_t>(half)) : options_.seq;
  std::vector<int64_t> counts(sets_.size());
  std::fill(tokens.begin(), tokens.end(), 0);
  for (int64_t t = 1; t < length; ++t) {
    const size_t set = draws.chance(kFavoured) ? favoured : draws.below(sets_.size());
    // Zipf's law: frequent tokens are learnt in a few steps, rare ones later.
    const double rank =
        portable_exp(draws.uniform() * portable_log(static_cast<double>(sets_[set].size()) + 1.0));
    tokens[static_cast<size_t>(t)] = sets_[set][std::min(static_cast<size_t>(rank), sets_[set].size()) - 1];
    ++counts[set];
  }
  label = static_cast<int32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  return length;
}

void PatternText::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  for (size_t r = 0; r < records.size(); ++r) {
    const int64_t row = static_cast<int64_t>(r);
    const auto tokens = batch.record<int32_t>(0, row);
    const auto segments = batch.record<int32_t>(1, row);
    int32_t label = kIgnoredLabel;
    int64_t length = 1;
    if (records[r] == kNoRecord)
      std::fill(tokens.begin(), tokens.end(), 0);
    else
      length = make(records[r], tokens, label);
    std::fill(segments.begin(), segments.end(), 0);
    batch.record<int32_t>(2, row)[0] = label;
    if (!options_.padded) continue;
    const auto visible = batch.record<uint8_t>(3, row);
    for (size_t t = 0; t < visible.size(); ++t) visible[t] = static_cast<int64_t>(t) < length;
  }
}

std::string PatternText::fingerprint() const {
  return sha256(fmt::format("pattern_text 1\n{} {} {} {} {} {} {}\n", options_.records, options_.first,
                            options_.seq, options_.vocab, options_.classes, options_.padded, options_.seed));
}

std::string PatternText::describe(int64_t record) const {
  return fmt::format("pattern_text record {}", options_.first + record);
}

namespace {

constexpr uint32_t kImageStream = 12;
constexpr uint32_t kNoiseStream = 13;
constexpr float kNoise = 0.8f;

// An angle in turns as the integer that portable_sin_cos takes; whole turns fall away.
uint32_t turn_of(double turns) { return static_cast<uint32_t>(static_cast<int64_t>(turns * 0x1p32)); }

// Factors of the picture along one axis: cosine and sine of the grating's phase there, and the blob's
// profile.
struct Axis {
  std::vector<float> cos, sin, blob;

  Axis(int64_t size, double turns_per_pixel, double phase, double blob_centre, double blob_width) {
    for (int64_t i = 0; i < size; ++i) {
      const SinCos angle = portable_sin_cos(turn_of(static_cast<double>(i) * turns_per_pixel + phase));
      cos.push_back(static_cast<float>(angle.cos));
      sin.push_back(static_cast<float>(angle.sin));
      const double distance = (static_cast<double>(i) - blob_centre) / blob_width;
      blob.push_back(static_cast<float>(portable_exp(-0.5 * distance * distance)));
    }
  }
};

}  // namespace

PatternImages::PatternImages(const PatternImagesOptions& options) : options_(options) {
  if (options.records < 1 || options.classes < 2 || options.image < 4)
    throw UserError("pattern_images: {} records of {} pixels in {} classes; use at least 1, 4 and 2",
                    options.records, options.image, options.classes);
}

std::vector<Column> PatternImages::columns() const {
  return {{"images", DType::kF32, {options_.image, options_.image, 3}}, {"labels", DType::kI32, {}}};
}

int32_t PatternImages::make(int64_t record, std::span<float> pixels) const {
  const uint64_t index = static_cast<uint64_t>(options_.first + record);
  Draws draws(options_.seed, kImageStream, index);
  const uint32_t label = draws.below(static_cast<uint64_t>(options_.classes));
  const int64_t size = options_.image;
  const double side = static_cast<double>(size);
  const SinCos direction = portable_sin_cos(turn_of(0.5 * label / static_cast<double>(options_.classes)));
  const double frequency = draws.between(0.09, 0.16);  // turns per pixel
  const Axis rows(size, frequency * direction.sin, draws.uniform(), draws.uniform() * side, side / 6);
  const Axis columns(size, frequency * direction.cos, 0, draws.uniform() * side, side / 6);
  std::array<float, 3> grating, blob;
  for (float& channel : grating) channel = static_cast<float>(draws.between(0.3, 1.2));
  for (float& channel : blob) channel = static_cast<float>(draws.between(-2.0, 2.0));

  Draws noise(options_.seed, kNoiseStream, index);
  size_t at = 0;
  for (size_t y = 0; y < rows.cos.size(); ++y)
    for (size_t x = 0; x < columns.cos.size(); ++x) {
      const float wave = rows.sin[y] * columns.cos[x] + rows.cos[y] * columns.sin[x];
      const float bump = rows.blob[y] * columns.blob[x];
      // Three bytes of one word: uniform in (-1, 1), scaled to the deviation kNoise.
      uint32_t word = noise.bits();
      for (size_t channel = 0; channel < 3; ++channel, word >>= 8)
        pixels[at++] = grating[channel] * wave + blob[channel] * bump +
                       (static_cast<float>(word & 255) - 127.5f) * (kNoise * 1.7320508f / 128.0f);
    }
  return static_cast<int32_t>(label);
}

void PatternImages::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  for (size_t r = 0; r < records.size(); ++r) {
    const int64_t row = static_cast<int64_t>(r);
    const auto pixels = batch.record<float>(0, row);
    int32_t label = kIgnoredLabel;
    if (records[r] == kNoRecord)
      std::fill(pixels.begin(), pixels.end(), 0.0f);
    else
      label = make(records[r], pixels);
    batch.record<int32_t>(1, row)[0] = label;
  }
}

std::string PatternImages::fingerprint() const {
  return sha256(fmt::format("pattern_images 1\n{} {} {} {} {}\n", options_.records, options_.first,
                            options_.image, options_.classes, options_.seed));
}

std::string PatternImages::describe(int64_t record) const {
  return fmt::format("pattern_images record {}", options_.first + record);
}

}  // namespace lockstep
