#include "data/parquet/metadata.h"

#include <array>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "data/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::string_view kEncryptedMagic = "PARE";
constexpr int64_t kMostFooterBytes = int64_t{1} << 28;
constexpr int kMostColumns = 1 << 16;

enum class Repetition : uint8_t { kRequired, kOptional, kRepeated };

// ConvertedType, as numbered in files.
enum : uint8_t { kUtf8 = 0, kList = 3, kEnum = 4, kDecimal = 5, kUint8 = 11, kUint64 = 14, kJson = 19 };

struct SchemaElement {
  std::string name;
  std::optional<Physical> physical;  // nothing: a group
  int32_t fixed_length = 0;
  Repetition repetition = Repetition::kRequired;
  int64_t children = 0;
  int64_t converted = -1;
  int64_t scale = 0;
  bool text = false;
  bool list = false;
  bool decimal = false;
  bool is_unsigned = false;
  bool float16 = false;
};

template <typename T>
T ranged(int64_t value, int64_t low, int64_t high, const char* what) {
  if (value < low || value > high) throw Damaged(fmt::format("{} is {}", what, value));
  return static_cast<T>(value);
}

int32_t size_of(int64_t value, const char* what) {
  return ranged<int32_t>(value, 0, std::numeric_limits<int32_t>::max(), what);
}

int64_t long_of(int64_t value, const char* what) { return ranged<int64_t>(value, 0, int64_t{1} << 56, what); }

void read_logical_type(ThriftReader& reader, SchemaElement& element) {
  reader.structure([&](int id, ThriftType type) {
    reader.expect(type, ThriftType::kStruct);
    element.text = element.text || id == 1 || id == 4 || id == 12;  // string, enumeration, JSON
    element.list = element.list || id == 3;
    element.decimal = element.decimal || id == 5;
    element.float16 = element.float16 || id == 15;
    reader.structure([&](int inner, ThriftType inner_type) {
      if (id == 5 && inner == 1)
        element.scale = reader.integer(inner_type);
      else if (id == 10 && inner == 2)
        element.is_unsigned = !reader.boolean(inner_type);
      else
        reader.skip(inner_type);
    });
  });
}

SchemaElement read_element(ThriftReader& reader) {
  SchemaElement element;
  reader.structure([&](int id, ThriftType type) {
    switch (id) {
      case 1: element.physical = ranged<Physical>(reader.integer(type), 0, 7, "a physical type"); break;
      case 2: element.fixed_length = size_of(reader.integer(type), "a length"); break;
      case 3: element.repetition = ranged<Repetition>(reader.integer(type), 0, 2, "a repetition"); break;
      case 4: element.name = reader.binary(type); break;
      case 5: element.children = size_of(reader.integer(type), "a number of columns"); break;
      case 6: element.converted = reader.integer(type); break;
      case 7: element.scale = reader.integer(type); break;
      case 10:
        reader.expect(type, ThriftType::kStruct);
        read_logical_type(reader, element);
        break;
      default: reader.skip(type);
    }
  });
  const int64_t converted = element.converted;
  element.text = element.text || converted == kUtf8 || converted == kEnum || converted == kJson;
  element.list = element.list || converted == kList;
  element.decimal = element.decimal || converted == kDecimal;
  element.is_unsigned = element.is_unsigned || (converted >= kUint8 && converted <= kUint64);
  return element;
}

// Why a plain value of this kind cannot be read; empty: it can.
std::string refusal_of(const SchemaElement& element) {
  if (element.physical == Physical::kInt96)
    return "has 96-bit time stamps; write them as 64-bit ones (INT64)";
  if (element.float16) return "has 16-bit floats; write them as FLOAT";
  if (element.decimal) {
    if (element.physical != Physical::kInt32 && element.physical != Physical::kInt64)
      return "has decimals stored as bytes; write them as DOUBLE, or as decimals of at most 18 digits in "
             "INT64";
    if (element.scale < 0 || element.scale > 22)
      return "has decimals of a scale that a double cannot hold; write them as DOUBLE";
  }
  return {};
}

// The leaves of a schema in their order, which is that of the chunks of a row group.
class Schema {
 public:
  explicit Schema(const std::vector<SchemaElement>& elements) : elements_(elements) {
    if (elements.empty()) throw Damaged("it has no schema");
    for (int64_t i = 0; i < elements[0].children; ++i) add_top();
    if (next_ != elements.size()) throw Damaged("its schema does not add up");
    if (leaves_.empty()) throw Damaged("it has no columns");
  }
  std::vector<Leaf> take() { return std::move(leaves_); }

 private:
  const SchemaElement& next() {
    if (next_ == elements_.size()) throw Damaged("its schema ends too early");
    return elements_[next_++];
  }

  static Leaf leaf_of(const SchemaElement& element) {
    Leaf leaf;
    leaf.name = element.name;
    leaf.physical = *element.physical;
    leaf.fixed_length = element.fixed_length;
    leaf.text = element.text && *element.physical == Physical::kByteArray;
    leaf.is_unsigned = element.is_unsigned;
    leaf.scale = element.decimal ? static_cast<int>(element.scale) : -1;
    leaf.refusal = refusal_of(element);
    return leaf;
  }

  void add_top() {
    const SchemaElement& top = next();
    if (top.physical) {
      Leaf leaf = leaf_of(top);
      leaf.optional = top.repetition == Repetition::kOptional;
      leaf.max_repetition = top.repetition == Repetition::kRepeated;
      leaf.max_definition = top.repetition != Repetition::kRequired;
      leaves_.push_back(std::move(leaf));
      return;
    }
    if (top.children == 1 && top.repetition != Repetition::kRepeated && (add_list(top) || add_structs(top)))
      return;
    for (int64_t i = 0; i < top.children; ++i) add_nested(top.name, 1);
  }

  // A list of plain values: the group holds a repeated value, or a repeated group of one value.
  bool add_list(const SchemaElement& top) {
    const size_t begin = next_;
    const SchemaElement& repeated = next();
    const SchemaElement* value = &repeated;
    int definition = top.repetition == Repetition::kOptional ? 2 : 1;
    if (!repeated.physical && repeated.children == 1) {
      value = &next();
      definition += value->repetition == Repetition::kOptional;
    }
    if (!top.list || repeated.repetition != Repetition::kRepeated || !value->physical ||
        (value != &repeated && value->repetition == Repetition::kRepeated)) {
      next_ = begin;
      return false;
    }
    Leaf leaf = leaf_of(*value);
    leaf.name = top.name;
    leaf.optional = top.repetition == Repetition::kOptional;
    leaf.max_repetition = 1;
    leaf.max_definition = definition;
    leaves_.push_back(std::move(leaf));
    return true;
  }

  // A list of structs: each of their plain values is a list.
  bool add_structs(const SchemaElement& top) {
    const size_t begin = next_;
    const SchemaElement& repeated = next();
    std::string path = top.name + "." + repeated.name;
    int64_t values = repeated.children;
    int definition = top.repetition == Repetition::kOptional ? 2 : 1;
    if (!repeated.physical && repeated.children == 1) {
      const SchemaElement& element = next();
      path += "." + element.name;
      values = element.physical ? 0 : element.children;
      definition += element.repetition == Repetition::kOptional;
      if (element.repetition == Repetition::kRepeated) values = 0;
    }
    if (!top.list || repeated.physical || repeated.repetition != Repetition::kRepeated || values == 0) {
      next_ = begin;
      return false;
    }
    for (int64_t i = 0; i < values; ++i) {
      const size_t at = next_;
      const SchemaElement& value = next();
      if (!value.physical || value.repetition == Repetition::kRepeated) {
        next_ = at;
        add_nested(path, 2);
        continue;
      }
      Leaf leaf = leaf_of(value);
      leaf.name = path + "." + value.name;
      leaf.optional = top.repetition == Repetition::kOptional;
      leaf.max_repetition = 1;
      leaf.max_definition = definition + (value.repetition == Repetition::kOptional ? 1 : 0);
      leaf.nested = std::string(kNested);
      leaves_.push_back(std::move(leaf));
    }
    return true;
  }

  void add_nested(const std::string& path, int depth) {
    if (depth > kDeepest) throw Damaged("its schema is nested too deeply");
    const SchemaElement& element = next();
    const std::string name = path + "." + element.name;
    if (element.physical) {
      Leaf leaf = leaf_of(element);
      leaf.name = name;
      leaf.refusal = std::string(kNested);
      leaves_.push_back(std::move(leaf));
      return;
    }
    for (int64_t i = 0; i < element.children; ++i) add_nested(name, depth + 1);
  }

  static constexpr std::string_view kNested =
      "is nested; write its parts as columns of their own (plain values, or lists of plain values)";
  static constexpr int kDeepest = 64;
  const std::vector<SchemaElement>& elements_;
  size_t next_ = 1;
  std::vector<Leaf> leaves_;
};

std::optional<Codec> compression_of(int64_t codec) {
  switch (codec) {
    case 0: return Codec::kNone;
    case 1: return Codec::kSnappy;
    case 2: return Codec::kGzip;
    case 6: return Codec::kZstd;
    case 7: return Codec::kLz4;
    default: return {};
  }
}

ColumnChunk read_chunk(ThriftReader& reader) {
  ColumnChunk chunk;
  int64_t data = -1;
  int64_t dictionary = -1;
  const auto metadata = [&](int id, ThriftType type) {
    switch (id) {
      case 4:
        chunk.codec = size_of(reader.integer(type), "a codec");
        chunk.compression = compression_of(chunk.codec);
        break;
      case 5: chunk.values = long_of(reader.integer(type), "a number of values"); break;
      case 7: chunk.bytes = long_of(reader.integer(type), "the size of a column"); break;
      case 9: data = long_of(reader.integer(type), "the offset of a column"); break;
      case 11: dictionary = long_of(reader.integer(type), "the offset of a dictionary"); break;
      default: reader.skip(type);
    }
  };
  reader.structure([&](int id, ThriftType type) {
    if (id == 1) throw Damaged("its columns lie in other files, which is not supported; write one file");
    if (id != 3) return reader.skip(type);
    reader.expect(type, ThriftType::kStruct);
    reader.structure(metadata);
  });
  if (data < 0) throw Damaged("a column has no offset");
  // Some writers give 0 for no dictionary.
  chunk.offset = dictionary > 0 && dictionary < data ? dictionary : data;
  return chunk;
}

RowGroup read_group(ThriftReader& reader) {
  RowGroup group;
  reader.structure([&](int id, ThriftType type) {
    if (id == 1)
      reader.list(type, ThriftType::kStruct, [&] { group.columns.push_back(read_chunk(reader)); });
    else if (id == 3)
      group.rows = long_of(reader.integer(type), "a number of rows");
    else
      reader.skip(type);
  });
  return group;
}

void refuse_codecs(FileMetadata& metadata) {
  constexpr auto kNames = std::to_array<std::string_view>({"", "", "", "LZO", "Brotli", "LZ4 of Hadoop"});
  for (const RowGroup& group : metadata.groups) {
    for (size_t c = 0; c < metadata.leaves.size(); ++c) {
      const ColumnChunk& chunk = group.columns[c];
      if (chunk.compression) continue;
      const bool known = static_cast<size_t>(chunk.codec) < kNames.size();
      metadata.leaves[c].refusal = fmt::format(
          "is compressed with {}; write it with snappy, zstd, gzip, lz4_raw or without compression",
          known ? kNames[static_cast<size_t>(chunk.codec)] : "an unknown codec");
    }
  }
}

void check_groups(const FileMetadata& metadata, int64_t end, const ByteSource& file) {
  for (size_t g = 0; g < metadata.groups.size(); ++g) {
    for (size_t c = 0; c < metadata.leaves.size(); ++c) {
      const ColumnChunk& chunk = metadata.groups[g].columns[c];
      if (chunk.offset >= 4 && chunk.offset <= end && chunk.bytes <= end - chunk.offset) continue;
      throw UserError(
          "{}: column '{}' of row group {} is said to lie at bytes {} to {}, outside the data; the "
          "footer is damaged or the file was cut, write it again",
          file.name(), metadata.leaves[c].name, g, chunk.offset, chunk.offset + chunk.bytes);
    }
  }
}

}  // namespace

BlockField Leaf::field() const {
  const auto type = [&] {
    switch (physical) {
      case Physical::kBoolean: return ValueType::kU8;
      case Physical::kInt32:
        return scale >= 0 ? ValueType::kF64 : is_unsigned ? ValueType::kI64 : ValueType::kI32;
      case Physical::kInt64: return scale >= 0 ? ValueType::kF64 : ValueType::kI64;
      case Physical::kFloat: return ValueType::kF32;
      case Physical::kDouble: return ValueType::kF64;
      default: return ValueType::kBytes;
    }
  };
  return {name, type(), list() ? kVarying : 1};
}

FileMetadata parse_metadata(std::string_view footer) {
  ThriftReader reader(footer);
  std::vector<SchemaElement> elements;
  FileMetadata metadata;
  reader.structure([&](int id, ThriftType type) {
    if (id == 2)
      reader.list(type, ThriftType::kStruct, [&] { elements.push_back(read_element(reader)); });
    else if (id == 4)
      reader.list(type, ThriftType::kStruct, [&] { metadata.groups.push_back(read_group(reader)); });
    else
      reader.skip(type);
  });
  if (elements.size() > kMostColumns) throw Damaged(fmt::format("it has {} columns", elements.size()));
  metadata.leaves = Schema(elements).take();
  int64_t rows = 0;
  for (const RowGroup& group : metadata.groups) rows = long_of(rows + group.rows, "the number of rows");
  for (const RowGroup& group : metadata.groups)
    if (group.columns.size() != metadata.leaves.size())
      throw Damaged(fmt::format("a row group has {} columns, and the schema {}", group.columns.size(),
                                metadata.leaves.size()));
  return metadata;
}

FileMetadata read_metadata(const ByteSource& file) {
  const int64_t trailer = 8;
  if (file.size() < trailer + 4)
    throw UserError("{}: {} bytes are too few for a Parquet file", file.name(), file.size());
  std::string head(4, '\0');
  std::string tail(8, '\0');
  file.read(0, head);
  file.read(file.size() - trailer, tail);
  if (head == kEncryptedMagic || tail.ends_with(kEncryptedMagic))
    throw UserError("{}: the file is encrypted, which is not supported; write it without encryption",
                    file.name());
  if (head != kMagic) throw UserError("{}: not a Parquet file: it does not begin with PAR1", file.name());
  if (!tail.ends_with(kMagic))
    throw UserError("{}: the file ends at byte {} without a footer; it was cut, write it again", file.name(),
                    file.size());
  uint32_t size = 0;
  std::memcpy(&size, tail.data(), 4);
  if (size > std::min(file.size() - trailer - 4, kMostFooterBytes))
    throw UserError("{} at byte {}: a footer of {} bytes does not fit in the file; it is damaged",
                    file.name(), file.size() - trailer, size);
  const int64_t offset = file.size() - trailer - size;
  std::string footer(size, '\0');
  file.read(offset, footer);
  try {
    FileMetadata metadata = parse_metadata(footer);
    check_groups(metadata, offset, file);
    refuse_codecs(metadata);
    return metadata;
  } catch (const Damaged& damage) {
    throw UserError("{} at byte {}: the footer cannot be read: {}; write the file again", file.name(), offset,
                    damage.what());
  }
}

PageHeader parse_page_header(std::string_view bytes) {
  ThriftReader reader(bytes);
  PageHeader header;
  bool described = false;
  const auto encoding = [&](ThriftType type) {
    return ranged<Encoding>(reader.integer(type), 0, 255, "an encoding");
  };
  const auto data = [&](int id, ThriftType type) {
    switch (id) {
      case 1: header.values = size_of(reader.integer(type), "a page's number of values"); break;
      case 2: header.encoding = encoding(type); break;
      case 3: header.definition_encoding = encoding(type); break;
      case 4: header.repetition_encoding = encoding(type); break;
      default: reader.skip(type);
    }
  };
  const auto dictionary = [&](int id, ThriftType type) { id <= 2 ? data(id, type) : reader.skip(type); };
  const auto data_v2 = [&](int id, ThriftType type) {
    switch (id) {
      case 1: header.values = size_of(reader.integer(type), "a page's number of values"); break;
      case 3: header.rows = size_of(reader.integer(type), "a page's number of rows"); break;
      case 4: header.encoding = encoding(type); break;
      case 5: header.definition_bytes = size_of(reader.integer(type), "the size of levels"); break;
      case 6: header.repetition_bytes = size_of(reader.integer(type), "the size of levels"); break;
      case 7: header.compressed = reader.boolean(type); break;
      default: reader.skip(type);
    }
  };
  reader.structure([&](int id, ThriftType type) {
    switch (id) {
      case 1: header.kind = ranged<PageKind>(reader.integer(type), 0, 3, "a page's kind"); break;
      case 2: header.uncompressed = size_of(reader.integer(type), "a page's size"); break;
      case 3: header.stored = size_of(reader.integer(type), "a page's size"); break;
      case 4: header.crc = static_cast<uint32_t>(reader.integer(type)); break;
      case 5:
      case 7:
      case 8:
        reader.expect(type, ThriftType::kStruct);
        described = true;
        id == 5 ? reader.structure(data) : id == 7 ? reader.structure(dictionary) : reader.structure(data_v2);
        break;
      default: reader.skip(type);
    }
  });
  if (!described && header.kind != PageKind::kIndex)
    throw Damaged("a page's header does not say what it holds");
  header.header_bytes = reader.consumed();
  return header;
}

}  // namespace lockstep::parquet
