// ByteSource: the bytes of one shard, read at any offset by any number of threads.
//
// A plain file is read with pread, or mapped where many short pieces are read; a text in memory stands in for
// one in tests and for generated data; a compressed file gives its bytes as if it were not. Errors name the
// file and the offset.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes/index_folder.h"

struct stat;

namespace lockstep {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  const std::string& name() const { return name_; }  // the path, or what messages call it
  virtual int64_t size() const = 0;
  // Fills `out` with the bytes from `offset` on. Throws UserError where the file cannot give all of them:
  // it is shorter than it was, it has changed, it is gone, or the disk reports an error.
  virtual void read(int64_t offset, std::span<char> out) const = 0;
  // Whether the file, or each of several, can be mapped into memory as a whole.
  virtual bool mappable() const { return false; }
  // Bytes in memory, as they lie in the file: null where they cannot be mapped, or not in one piece. Reading
  // them may fail (base/guarded_read.h); what was read holds once `file` has been asked whether it changed.
  struct Mapped {
    const std::byte* data = nullptr;
    const ByteSource* file = nullptr;
    int64_t offset = 0;  // in the file
  };
  virtual Mapped mapped(int64_t offset, int64_t bytes) const;
  // Throws UserError if the file is not what it was when it was opened; `offset` is for the message.
  virtual void check_unchanged(int64_t offset) const;
  // Where a byte lies, for messages: "tx.csv at byte 12".
  virtual std::string place(int64_t offset) const;
  // Changes when the file does, as far as can be seen without reading it: see stamp_of.
  virtual std::string stamp() const = 0;
  // A hash of a few pieces of the file as it lies on the disk, of all of it where it is short: what is kept
  // of a file is believed only where these are what they were, since times can be set back. Empty where there
  // is no file, and for folders.
  virtual std::string sample() const { return {}; }

 protected:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

// Size, time of change, inode, and, behind the last space, the time that the system alone sets: when content,
// name or rights last changed.
std::string stamp_of(const struct stat& status);

// Throws UserError when the file cannot be opened.
std::unique_ptr<ByteSource> open_file(const std::string& path);
std::unique_ptr<ByteSource> open_text(std::string name, std::string text);
std::unique_ptr<ByteSource> open_text(std::string name, std::shared_ptr<const std::string> text);

// Several byte sources as one: the bytes of the first, then those of the next. For shards that lie in more
// than one file, such as an index and what it describes.

// `name` is what the whole is called; errors of reading name the part.
std::unique_ptr<ByteSource> join_bytes(std::string name, std::vector<std::unique_ptr<ByteSource>> parts);

// Compressed files as a ByteSource that gives their content, read at any offset by any number of threads.
//
// A read goes on where an earlier one ended if that is near, and begins at an access point otherwise: reading
// in order decompresses everything once, reading a block anywhere costs what lies between the point and it.

// Opens a file; one that begins as gzip or zstd does, by its content. Access points are kept in `folder`.
// Throws UserError for what cannot be opened or is damaged.
std::unique_ptr<ByteSource> open_shard(const std::string& path, const IndexFolder& folder = {});

// The same for a file that is open already, or a text in memory.
std::unique_ptr<ByteSource> decompressed(std::unique_ptr<ByteSource> file, const IndexFolder& folder = {});

// "tx.csv.gz" without ".gz", "tx.csv" as it is.
std::string_view without_compression(std::string_view path);

}  // namespace lockstep
