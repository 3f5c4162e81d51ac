// A folder of files as one row of bytes: a list of the files, then their contents one after another, in the
// order of their paths' bytes. Reading a file that is not what it was when the folder was opened is an error.
//
// The list: the magic, then as u64 the number of files and the length of all their names; for each file u64
// bytes and u64 where its name ends; the names, relative to the folder.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/bytes/byte_source.h"

namespace lockstep {

struct FolderFile {
  std::string name;  // relative to the folder
  int64_t offset = 0, bytes = 0;
};

// The files below the folder whose names end in one of the suffixes, whatever their case. Throws UserError
// when there is none.
std::unique_ptr<ByteSource> open_folder(const std::string& path, const std::vector<std::string>& suffixes);
// The list at the head of such bytes. Throws UserError if it does not fit them.
std::vector<FolderFile> folder_files(const ByteSource& bytes);

}  // namespace lockstep
