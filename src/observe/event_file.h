// An event file as TensorBoard reads them: records framed by length and masked CRC-32C, each holding one
// protocol buffer Event.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct Scalar {
  std::string tag;
  double value = 0;
};

class EventFile {
 public:
  // events.out.tfevents.<seconds>.<host>.<pid> in the folder, which is made if it is not there. TensorBoard
  // reads a folder's files in the order of their names; the seconds are later than those of any file that is
  // there already.
  EventFile(const std::string& folder, double unix_seconds);

  const std::string& path() const { return path_; }
  // Records reach the system before these return. Throw UserError.
  //
  // A session that starts at a step: TensorBoard drops what was written before of this step and later ones.
  void start_session(int64_t step, double unix_seconds);
  void add_scalars(int64_t step, double unix_seconds, const std::vector<Scalar>& scalars);

 private:
  void append(std::string_view event);

  std::string path_;
  std::ofstream out_;
};

}  // namespace lockstep
