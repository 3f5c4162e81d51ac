// Folders of images, one folder per class: a shard is the folder of one class (format/folder_bytes.h), and
// its name is the class. Subfolders belong to the class. Files that are not called .jpg, .jpeg or .png are
// passed over.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/format/format.h"

namespace lockstep {

std::unique_ptr<Format> make_images_format(const FormatOptions& options);

// The folders of the classes below the named folders, sorted by the bytes of their paths. Throws UserError
// for a folder without any.
std::vector<std::unique_ptr<ByteSource>> open_class_folders(const std::vector<std::string>& folders);

}  // namespace lockstep
