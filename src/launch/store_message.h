// What the store and its clients say to each other: a kind and a few strings, in frames of bounded length.
//
// A frame is the length of what follows (4 bytes, little endian), the kind (1 byte), then every field as its
// length (4 bytes) and its bytes. The reader takes bytes as they come, from anybody: it never holds more than
// its limit, and what is no frame is a CommError.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class MessageKind : uint8_t {
  // Getting acquainted: hello {protocol, name, nonce}, challenge {nonce}, proof {proof}, welcome {proof}.
  kHello = 1,
  kChallenge,
  kProof,
  kWelcome,
  // Requests.
  kSet,      // key, value
  kGet,      // key, milliseconds to wait for it
  kAdd,      // key, number
  kBarrier,  // name, how many, milliseconds
  kList,     // prefix
  kBye,
  // Answers.
  kOk,        // what was asked for
  kTimedOut,  // for a barrier: who came
  kLost,      // the name of a worker whose connection broke
  kRefused,   // why
};

struct StoreMessage {
  MessageKind kind = MessageKind::kOk;
  std::vector<std::string> fields;

  bool operator==(const StoreMessage&) const = default;
};

// Enough for what all workers say about themselves, for as many as there may be.
inline constexpr size_t kFrameLimit = size_t{32} << 20;
// Before somebody has shown the token.
inline constexpr size_t kStrangerFrameLimit = 512;

// LOCKSTEP_CHECKs that the frame keeps to kFrameLimit.
std::string encode(const StoreMessage& message);

class FrameReader {
 public:
  explicit FrameReader(size_t limit) : limit_(limit) {}

  void set_limit(size_t limit) { limit_ = limit; }
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // The next whole message; nothing when its end has not come yet. CommError for what is no frame.
  std::optional<StoreMessage> next();
  // Whether a part of a message has come.
  bool in_the_middle() const { return !buffer_.empty(); }

 private:
  size_t limit_;
  std::string buffer_;
};

}  // namespace lockstep
