// The secret that the workers of a run share, and proofs of knowing it.
//
// It is never sent: each side proves that it knows it by an HMAC-SHA256 over numbers that both have just
// drawn, so that neither a listener nor a stranger on the port can use what was said. What follows is not
// encrypted: the store is for networks that only the cluster can write to.
#pragma once
#include <string>
#include <string_view>

#include "launch/placement.h"
#include "launch/variables.h"

namespace lockstep {

// In hexadecimal.
std::string random_token();
std::string random_nonce();

// The proof of `side` (client or server) in the conversation with these nonces.
std::string proof_of(std::string_view token, std::string_view side, std::string_view name,
                     std::string_view client_nonce, std::string_view server_nonce);
// Takes the same time wherever they differ.
bool same_proof(std::string_view a, std::string_view b);

// LOCKSTEP_TOKEN, or the content of the file LOCKSTEP_TOKEN_FILE; empty if neither is set. UserError when it
// is too short to be a secret.
std::string token_from(const Variables& variables);

// Where workers that a stranger's launcher started on one host leave and find the token of the run on a port:
// a file that only this user can read, in a folder that only this user can enter.
class RunTokenFile {
 public:
  RunTokenFile(const Variables& variables, int64_t port);

  void write(std::string_view token) const;
  // Empty when there is none (yet).
  std::string read() const;
  void remove() const noexcept;

 private:
  std::string folder_;
  std::string path_;
};

}  // namespace lockstep
