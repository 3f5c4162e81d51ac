#include "launch/store_message.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(StoreMessage, ComesOutAsItWentInHoweverItIsCut) {
  const std::vector<StoreMessage> messages = {{MessageKind::kBye, {}},
                                              {MessageKind::kSet, {"key", std::string("a\0b", 3)}},
                                              {MessageKind::kOk, {"", ""}}};
  std::string bytes;
  for (const StoreMessage& message : messages) bytes += encode(message);
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader(100);
    std::vector<StoreMessage> read;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(std::string_view(bytes).substr(at, piece));
      while (auto message = reader.next()) read.push_back(*message);
    }
    EXPECT_EQ(read, messages) << piece;
    EXPECT_FALSE(reader.in_the_middle());
  }
}

TEST(StoreMessage, RefusesWhatIsNoFrame) {
  const std::string bad[] = {
      std::string("\0\0\0\0", 4),                      // empty
      std::string("\x65\0\0\0", 4),                    // longer than the limit of 100
      std::string("\xff\xff\xff\xff", 4),              //
      std::string("\1\0\0\0\0", 5),                    // kind 0
      std::string("\1\0\0\0\x63", 5),                  // kind 99
      std::string("\3\0\0\0\1\0\0", 7),                // ends inside a length
      std::string("\6\0\0\0\1\2\0\0\0x", 10),          // a field longer than the frame
      std::string("\6\0\0\0\1\xff\xff\xff\xffx", 10),  //
  };
  for (const std::string& bytes : bad) {
    FrameReader reader(100);
    reader.feed(bytes);
    EXPECT_THROW(reader.next(), CommError);
  }
}

}  // namespace
}  // namespace lockstep
