#include "launch/handshake.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "launch/store_message.h"
#include "launch/store_protocol.h"
#include "launch/token.h"

namespace lockstep {
namespace {

// A conversation in the messages of the store, whose strangers have the same limits.
class Conversation {
 public:
  Conversation(const Descriptor& socket, TimePoint deadline) : socket_(socket), deadline_(deadline) {}

  void say(MessageKind kind, std::vector<std::string> fields) {
    const std::string bytes = encode(StoreMessage{kind, std::move(fields)});
    size_t sent = 0;
    while (sent < bytes.size()) {
      if (!wait_writable(socket_, deadline_)) throw CommError("it does not take what is sent to it");
      const ssize_t some = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (some >= 0)
        sent += static_cast<size_t>(some);
      else if (errno != EAGAIN && errno != EINTR)
        throw CommError("the connection broke: {}", std::strerror(errno));
    }
  }

  StoreMessage hear() {
    while (true) {
      if (auto message = reader_.next()) return std::move(*message);
      if (!wait_readable(socket_, deadline_)) throw CommError("it says nothing in time");
      std::array<char, kStrangerFrameLimit> buffer;
      const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got > 0)
        reader_.feed({buffer.data(), static_cast<size_t>(got)});
      else if (got == 0)
        throw CommError("it closed the connection");
      else if (errno != EAGAIN && errno != EINTR)
        throw CommError("the connection broke: {}", std::strerror(errno));
    }
  }

  // Nothing may be said before its turn: it would be lost to what follows the conversation.
  void end() {
    if (reader_.in_the_middle()) throw CommError("it speaks out of turn");
  }

 private:
  const Descriptor& socket_;
  TimePoint deadline_;
  FrameReader reader_{kStrangerFrameLimit};
};

}  // namespace

void greet(const Descriptor& socket, const ServedProtocol& protocol, std::string_view token,
           std::string_view name, TimePoint deadline) {
  Conversation conversation(socket, deadline);
  const std::string nonce = random_nonce();
  conversation.say(MessageKind::kHello, {std::string(protocol.name), std::string(name), nonce});
  const auto expect = [&](MessageKind kind) {
    const StoreMessage answer = conversation.hear();
    if (answer.kind == MessageKind::kRefused && answer.fields.size() == 1)
      throw CommError("it refuses: {}", answer.fields[0]);
    if (answer.kind != kind || answer.fields.size() != 1) throw CommError("it answers out of turn");
    return answer.fields[0];
  };
  const std::string challenge = expect(MessageKind::kChallenge);
  conversation.say(MessageKind::kProof, {proof_of(token, "client", name, nonce, challenge)});
  if (!same_proof(expect(MessageKind::kWelcome), proof_of(token, "server", name, nonce, challenge)))
    throw CommError("it does not know the token itself: another program listens there");
  conversation.end();
}

std::string recognise(const Descriptor& socket, const ServedProtocol& protocol, std::string_view token,
                      TimePoint deadline) {
  Conversation conversation(socket, deadline);
  const StoreMessage hello = conversation.hear();
  if (hello.kind != MessageKind::kHello || hello.fields.size() != 3)
    throw CommError("something else than a greeting");
  if (hello.fields[0] != protocol.name) {
    conversation.say(
        MessageKind::kRefused,
        {fmt::format("this is {}, which speaks {}; install the same version of Lockstep on all hosts",
                     protocol.server, protocol.name)});
    throw CommError("it speaks '{:.20}', this is {}", hello.fields[0], protocol.name);
  }
  const std::string nonce = random_nonce();
  conversation.say(MessageKind::kChallenge, {nonce});
  const StoreMessage proof = conversation.hear();
  if (proof.kind != MessageKind::kProof || proof.fields.size() != 1)
    throw CommError("something else than a proof");
  const auto proven = [&](std::string_view side) {
    return proof_of(token, side, hello.fields[1], hello.fields[2], nonce);
  };
  if (!same_proof(proof.fields[0], proven("client"))) {
    conversation.say(MessageKind::kRefused, {std::string(kOtherToken)});
    throw CommError("it has another token");
  }
  conversation.end();
  conversation.say(MessageKind::kWelcome, {proven("server")});
  return hello.fields[1];
}

}  // namespace lockstep
