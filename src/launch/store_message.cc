#include "launch/store_message.h"

#include "base/error.h"

namespace lockstep {
namespace {

constexpr size_t kLengthBytes = 4;

void put_length(std::string& out, size_t length) {
  for (size_t i = 0; i < kLengthBytes; ++i) out += static_cast<char>((length >> (8 * i)) & 0xff);
}

size_t read_length(std::string_view bytes) {
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return length;
}

StoreMessage decode(std::string_view body) {
  const auto kind = static_cast<unsigned char>(body.front());
  if (kind < static_cast<unsigned char>(MessageKind::kHello) ||
      kind > static_cast<unsigned char>(MessageKind::kRefused))
    throw CommError("a message of the unknown kind {}", kind);
  StoreMessage message;
  message.kind = static_cast<MessageKind>(kind);
  body.remove_prefix(1);
  while (!body.empty()) {
    if (body.size() < kLengthBytes) throw CommError("a message that ends inside a length");
    const size_t length = read_length(body);
    body.remove_prefix(kLengthBytes);
    if (length > body.size())
      throw CommError("a message with a field of {} bytes where {} are left", length, body.size());
    message.fields.emplace_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  return message;
}

}  // namespace

std::string encode(const StoreMessage& message) {
  size_t length = 1;
  for (const std::string& field : message.fields) length += kLengthBytes + field.size();
  LOCKSTEP_CHECK(length <= kFrameLimit, "a frame of {} bytes", length);
  std::string frame;
  frame.reserve(kLengthBytes + length);
  put_length(frame, length);
  frame += static_cast<char>(message.kind);
  for (const std::string& field : message.fields) {
    put_length(frame, field.size());
    frame += field;
  }
  return frame;
}

std::optional<StoreMessage> FrameReader::next() {
  if (buffer_.size() < kLengthBytes) return std::nullopt;
  const size_t length = read_length(buffer_);
  if (length == 0 || length > limit_)
    throw CommError("a frame of {} bytes where 1 to {} are allowed", length, limit_);
  if (buffer_.size() < kLengthBytes + length) return std::nullopt;
  StoreMessage message = decode(std::string_view(buffer_).substr(kLengthBytes, length));
  buffer_.erase(0, kLengthBytes + length);
  return message;
}

}  // namespace lockstep
