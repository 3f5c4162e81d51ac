// What must hold of any bytes that somebody sends to the store.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Reads the bytes as frames, at once and in small pieces: both must give the same messages, which must encode
// to what they were read from, and the store must answer or ignore each. Returns whether all of it was
// frames. Throws for anything but a CommError of the reader: that is a bug.
bool check_store_message(std::string_view bytes);

}  // namespace lockstep::testing
