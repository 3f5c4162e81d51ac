// One connection as the store sees it: bytes in and out, and how far the two have got acquainted.
#pragma once
#include "launch/store_message.h"
#include "launch/tcp.h"

namespace lockstep {

struct StoreConnection {
  enum class Stage { kStranger, kChallenged, kKnown };

  StoreConnection(uint64_t number, Descriptor descriptor, TimePoint now)
      : id(number), socket(std::move(descriptor)), peer(peer_of(socket)), since(now) {}

  uint64_t id;
  Descriptor socket;
  std::string peer;  // its address
  Stage stage = Stage::kStranger;
  std::string name;  // the worker's, once it has proven to be one
  std::string client_nonce, server_nonce;
  FrameReader reader{kStrangerFrameLimit};
  std::string output;
  // When it connected; later, when it last moved something that is unfinished.
  TimePoint since;
  bool said_goodbye = false;
  bool over = false;  // to be closed

  bool known() const { return stage == Stage::kKnown; }
  bool unfinished() const { return !output.empty() || reader.in_the_middle(); }

  // Takes what has come. False at the end of the connection.
  bool read_some(TimePoint now);
  // Sends what can be sent. False when the connection is broken.
  bool write_some(TimePoint now);
};

}  // namespace lockstep
