// The formats there are, by name: to read files with, and to write tables with.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "data/format/format.h"
#include "data/format/table_writer.h"

namespace lockstep {

// Throws UserError that names the formats there are.
std::unique_ptr<Format> make_format(std::string_view name, const FormatOptions& options);
std::vector<std::string_view> format_names();

// Throws UserError that names the formats that can be written, or the column that this one cannot hold.
std::unique_ptr<TableWriter> make_table_writer(std::string_view format, const std::vector<BlockField>& fields,
                                               const TableWriterOptions& options = {});
std::vector<std::string_view> written_formats();

}  // namespace lockstep
