// TextSource: the bytes of files as sequences for next-token training, with a vocabulary of 256 and no
// tokenizer.
//
// The files are joined in the order of their paths, with nothing between them. Window i holds the bytes
// [i T, i T + T + 1): tokens i32[T] are the first T of them, targets i32[T] the same shifted by one. Bytes
// after the last whole window are left out. The last windows are held out for evaluation.
#pragma once
#include <string>
#include <vector>

#include "data/source.h"

namespace lockstep {

class TextSource : public Source {
 public:
  // Throws UserError when the text does not fill one window, or has more bytes than the limit.
  TextSource(const std::vector<std::string>& files, int64_t seq, int64_t limit = int64_t{1} << 30);

  int64_t size() const override { return (static_cast<int64_t>(bytes_.size()) - 1) / seq_; }
  std::vector<Column> columns() const override;
  void fill(std::span<const int64_t> records, Batch& batch) const override;
  std::string fingerprint() const override { return fingerprint_; }
  std::string describe(int64_t record) const override;

 private:
  struct File {
    std::string path;
    int64_t first;  // the position of its first byte
  };

  int64_t seq_;
  std::string bytes_;
  std::vector<File> files_;
  std::string fingerprint_;
};

}  // namespace lockstep
