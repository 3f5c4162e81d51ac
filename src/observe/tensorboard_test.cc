#include "observe/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

// A reader of event files that shares nothing with the writer but the CRC, which has known values.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::string_view take(size_t size) {
    if (size > bytes_.size()) throw std::runtime_error("the bytes end too early");
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

 private:
  std::string_view bytes_;
};

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;
  int64_t session = 0;
};

std::pair<std::string, float> decode_value(Bytes bytes) {
  std::pair<std::string, float> value;
  while (!bytes.empty()) {
    const uint64_t key = bytes.varint();
    if (key == (1 << 3 | 2)) value.first = bytes.take(bytes.varint());
    if (key == (2 << 3 | 5)) value.second = bytes.number<float>();
  }
  return value;
}

Event decode_event(Bytes bytes) {
  Event event;
  while (!bytes.empty()) {
    const uint64_t key = bytes.varint();
    if (key == (1 << 3 | 1)) event.wall_time = bytes.number<double>();
    if (key == (2 << 3 | 0)) event.step = static_cast<int64_t>(bytes.varint());
    if ((key & 7) != 2) continue;
    const std::string_view content = bytes.take(bytes.varint());
    Bytes inner(content);
    if (key >> 3 == 3) event.file_version = content;
    if (key >> 3 == 7) {
      EXPECT_EQ(inner.varint(), 1U << 3);
      event.session = static_cast<int64_t>(inner.varint());
    }
    while (key >> 3 == 5 && !inner.empty()) {
      EXPECT_EQ(inner.varint(), 1U << 3 | 2);
      event.scalars.insert(decode_value(Bytes(inner.take(inner.varint()))));
    }
  }
  return event;
}

void expect_masked_crc(std::string_view bytes, uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8;
  EXPECT_EQ((rotated << 15) | (rotated >> 17), crc32c(bytes));
}

std::vector<Event> decode(const std::string& file) {
  std::vector<Event> events;
  Bytes bytes(file);
  while (!bytes.empty()) {
    const std::string_view length = bytes.take(8);
    expect_masked_crc(length, bytes.number<uint32_t>());
    const std::string_view event = bytes.take(Bytes(length).number<uint64_t>());
    expect_masked_crc(event, bytes.number<uint32_t>());
    events.push_back(decode_event(Bytes(event)));
  }
  return events;
}

// What TensorBoard shows of a folder: files by name, and a session's start drops its step and later ones.
std::map<std::string, std::map<int64_t, float>> shown(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::map<std::string, std::map<int64_t, float>> tags;
  for (const std::string& path : paths)
    for (const Event& event : decode(read_file(path))) {
      for (auto& [tag, points] : tags)
        if (event.session == 1) points.erase(points.lower_bound(event.step), points.end());
      for (const auto& [tag, value] : event.scalars) tags[tag][event.step] = value;
    }
  return tags;
}

StepRecord step(int64_t number, double loss) {
  StepRecord record;
  record.step = number;
  record.loss = loss;
  record.tokens = 100;
  record.samples = 10;
  record.seconds = 0.5;
  return record;
}

TensorBoardOptions at(double seconds) {
  TensorBoardOptions options;
  options.clock = [seconds] { return seconds; };
  return options;
}

TEST(TensorBoard, AFileBeginsWithItsVersion) {
  const TestFolder folder;
  TensorBoardWriter writer(folder.path("tb"), at(1234567890.25));
  StepRecord first = step(1, 0.75);
  first.grad_norm = std::numeric_limits<double>::infinity();
  writer.add(first);
  const auto entry = std::filesystem::directory_iterator(folder.path("tb"))->path();
  EXPECT_TRUE(entry.filename().string().starts_with("events.out.tfevents.1234567890.")) << entry;
  const std::vector<Event> events = decode(read_file(entry));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].session, 1);
  EXPECT_EQ(events[2].wall_time, 1234567890.25);
  EXPECT_EQ(events[2].step, 1);
  EXPECT_EQ(events[2].scalars.at("train/loss"), 0.75F);
  EXPECT_EQ(events[2].scalars.at("training/samples_per_second"), 20);
  EXPECT_TRUE(std::isinf(events[2].scalars.at("train/grad_norm")));
}

TEST(TensorBoard, StepsAfterAResumeReplaceThoseBefore) {
  const TestFolder folder;
  {
    TensorBoardWriter writer(folder.path(), at(5000));
    for (int64_t i = 1; i <= 6; ++i) writer.add(step(i, 1));
  }
  // The clock went back, and yet the file comes later.
  TensorBoardOptions resumed = at(4000);
  resumed.resume_step = 3;
  resumed.tokens_seen = 300;
  TensorBoardWriter writer(folder.path(), resumed);
  writer.add(step(4, 2));
  auto tags = shown(folder.path());
  EXPECT_EQ(tags["train/loss"], (std::map<int64_t, float>{{1, 1}, {2, 1}, {3, 1}, {4, 2}}));
  EXPECT_EQ(tags["train/num_input_tokens_seen"][4], 400);
  writer.rewind(2, 200);
  writer.add(step(3, 5));
  tags = shown(folder.path());
  EXPECT_EQ(tags["train/loss"], (std::map<int64_t, float>{{1, 1}, {2, 1}, {3, 5}}));
  EXPECT_EQ(tags["train/num_input_tokens_seen"][3], 300);
}

TEST(TensorBoard, ANewRunDropsTheOldOne) {
  const TestFolder folder;
  TensorBoardWriter(folder.path(), at(5000)).add(EvalRecord());
  const TensorBoardWriter writer(folder.path(), at(5000));
  EXPECT_TRUE(shown(folder.path())["eval/loss"].empty());
}

TEST(TensorBoard, EvaluationsAndTheEndHaveTagsOfTheirOwn) {
  const TestFolder folder;
  TensorBoardWriter writer(folder.path(), at(5000));
  EvalRecord record;
  record.step = 7;
  record.auc = 0.5;
  record.pr_auc = std::numeric_limits<double>::quiet_NaN();
  record.samples = 30;
  record.seconds = 2;
  writer.add(record);
  RunSummary summary;
  summary.steps = 8;
  summary.final_loss = 0.25;
  summary.samples_per_second = 64;
  summary.global_batch = 32;
  writer.finish(summary, 12);
  auto tags = shown(folder.path());
  EXPECT_EQ(tags["eval/auc"][7], 0.5F);
  EXPECT_EQ(tags["eval/samples_per_second"][7], 15);
  EXPECT_FALSE(tags.contains("eval/perplexity"));
  EXPECT_FALSE(tags.contains("eval/pr_auc")) << "undefined is no number";
  EXPECT_EQ(tags["train/train_loss"][8], 0.25F);
  EXPECT_EQ(tags["train/train_steps_per_second"][8], 2);
  EXPECT_EQ(tags["train/train_runtime"][8], 12);
}

}  // namespace
}  // namespace lockstep
