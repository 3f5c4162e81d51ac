// What must hold of any bytes that are given as a tar shard of images.
#pragma once
#include <string_view>

namespace lockstep::testing {

// The first byte chooses whether bad records are left out; the rest is the archive. Every record that is read
// must have an image that lies in it and a class, and where bad ones are left out, the image must be one that
// can be decoded. Returns whether there was a record. Throws for anything but a UserError: that is a bug.
bool check_tar(std::string_view bytes);

}  // namespace lockstep::testing
