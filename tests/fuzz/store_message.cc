#include "fuzz/store_message.h"

#include "base/error.h"
#include "launch/store_message.h"
#include "launch/store_state.h"

namespace lockstep::testing {
namespace {

constexpr size_t kLimit = 4096;

struct Reading {
  std::vector<StoreMessage> messages;
  bool all_frames = true;
};

Reading read(std::string_view bytes, size_t piece) {
  Reading reading;
  FrameReader reader(kLimit);
  try {
    while (!bytes.empty()) {
      reader.feed(bytes.substr(0, piece));
      bytes.remove_prefix(std::min(piece, bytes.size()));
      while (auto message = reader.next()) reading.messages.push_back(std::move(*message));
    }
    reading.all_frames = !reader.in_the_middle();
  } catch (const CommError&) {
    reading.all_frames = false;
  }
  return reading;
}

}  // namespace

bool check_store_message(std::string_view bytes) {
  const Reading whole = read(bytes, std::max<size_t>(bytes.size(), 1));
  const Reading pieces = read(bytes, 3);
  LOCKSTEP_CHECK(whole.messages == pieces.messages && whole.all_frames == pieces.all_frames,
                 "{} messages at once, {} in pieces", whole.messages.size(), pieces.messages.size());
  std::string again;
  StoreState state;
  std::vector<StoreState::Answer> answers;
  for (const StoreMessage& message : whole.messages) {
    again += encode(message);
    state.handle(1, "worker-1", message, TimePoint(), answers);
  }
  LOCKSTEP_CHECK(bytes.starts_with(again), "messages do not encode to what they were read from");
  state.expire(TimePoint::max(), answers);
  LOCKSTEP_CHECK(answers.size() == whole.messages.size(), "{} answers to {} requests", answers.size(),
                 whole.messages.size());
  for (const StoreState::Answer& answer : answers) encode(answer.message);
  return whole.all_frames && !whole.messages.empty();
}

}  // namespace lockstep::testing
