// ContentHash: a 128-bit hash of bytes (XXH3), to tell whether two files hold the same. Not against an
// adversary: identities and checkpoints use SHA-256 over it.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void update(std::string_view bytes);
  std::string finish() const;  // 32 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
