// ByteSource: the bytes of one shard, read at any offset by any number of threads.
//
// A plain file is read with pread; a text in memory stands in for one in tests and for generated data; a
// compressed file gives its bytes as if it were not. Errors name the file and the offset.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  const std::string& name() const { return name_; }  // the path, or what messages call it
  virtual int64_t size() const = 0;
  // Fills `out` with the bytes from `offset` on. Throws UserError where the file cannot give all of them:
  // it is shorter than it was, it has changed, it is gone, or the disk reports an error.
  virtual void read(int64_t offset, std::span<char> out) const = 0;
  // Says that these bytes will soon be read.
  virtual void expect(int64_t offset, int64_t bytes) const;
  // Where a byte lies, for messages: "tx.csv at byte 12".
  virtual std::string place(int64_t offset) const;
  // Changes when the file does, as far as can be seen without reading it: size and time of change.
  virtual std::string stamp() const = 0;

 protected:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

// Throws UserError when the file cannot be opened.
std::unique_ptr<ByteSource> open_file(const std::string& path);
std::unique_ptr<ByteSource> open_text(std::string name, std::string text);
std::unique_ptr<ByteSource> open_text(std::string name, std::shared_ptr<const std::string> text);

}  // namespace lockstep
