#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/test_folder.h"
#include "safetensors/reader.h"
#include "safetensors/writer.h"

namespace lockstep {
namespace {

std::string file_of(const std::string& text, size_t data_bytes) {
  std::string bytes(8, '\0');
  const uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + text + std::string(data_bytes, 'x');
}

SafetensorsHeader parse(const std::string& file) {
  const std::span bytes = std::as_bytes(std::span(file));
  const auto begin =
      safetensors_data_begin(bytes.first(std::min<size_t>(8, bytes.size())), std::ssize(file), "f");
  return parse_safetensors_header(bytes.first(static_cast<size_t>(begin)), std::ssize(file), "f");
}

// What the UserError says that `action` throws.
template <typename Action>
std::string user_error(const Action& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Safetensors, WritesTheBytesOfTheReferenceWriter) {
  const TestFolder folder;
  SafetensorsWriter writer(folder.path(), "a.safetensors",
                           {{"h", DType::kBF16, {3}}, {"b\"é", DType::kF32, {2, 1}}, {"n", DType::kI64, {}}},
                           {{"format", "pt"}});
  ASSERT_EQ(writer.tensors()[0].tensor.name, "n");
  const std::string data = "IIIIIIIIFFFFffffHHhhHH";
  const std::span bytes = std::as_bytes(std::span(data));
  writer.append(bytes.first(8));
  writer.append(bytes.subspan(8, 3));
  writer.append(bytes.subspan(11, 5));
  writer.append(bytes.subspan(16));
  const FileRecord record = writer.finish();
  const std::string header =
      "{\"__metadata__\":{\"format\":\"pt\"},\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
      "\"b\\\"é\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[8,16]},"
      "\"h\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[16,22]}}";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  const std::string written = read_file(folder.path("a.safetensors"));
  EXPECT_EQ(written, file_of(header + padding, 0) + data);
  EXPECT_EQ(record.sha256, sha256(written));
  EXPECT_EQ(record.bytes, std::ssize(written));
  EXPECT_EQ(
      parse(written),
      plan_safetensors({{"h", DType::kBF16, {3}}, {"b\"é", DType::kF32, {2, 1}}, {"n", DType::kI64, {}}},
                       {{"format", "pt"}}));
}

TEST(Safetensors, ReadsTensorsByName) {
  const TestFolder folder;
  const std::string path = folder.path("f");
  write_file(path, file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},
                               "b":{"shape":[3,1],"data_offsets":[0,3],"dtype":"BOOL"}}   )",
                           0) +
                       "123ab");
  const SafetensorsReader reader(path);
  EXPECT_EQ(reader.tensors()[0].tensor.name, "b");
  std::string a(2, ' ');
  reader.read(TensorSpec{"a", DType::kU8, {2}}, std::as_writable_bytes(std::span(a)));
  EXPECT_EQ(a, "ab");
  EXPECT_EQ(user_error([&] { reader.at("c"); }), path + " has no tensor c; did you mean b?");
  EXPECT_EQ(user_error([&] {
              reader.read(TensorSpec{"a", DType::kF32, {2}}, {});
            }),
            path + ": tensor a is u8[2], but f32[2] is needed");
}

TEST(Safetensors, MapsTensorsOfAnyPlaceAndSize) {
  const TestFolder folder;
  SafetensorsWriter writer(folder.path(), "f",
                           {{"a", DType::kU8, {7}}, {"b", DType::kU8, {100'000}}, {"none", DType::kU8, {0}}},
                           {});
  std::string data(100'007, ' ');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * i >> 3);
  const std::span bytes = std::as_bytes(std::span(data));
  writer.append(bytes.first(7));
  writer.append(bytes.subspan(7));
  writer.finish();
  const SafetensorsReader reader(folder.path("f"));
  const auto mapped = [&](const char* name) {
    const FileMapping mapping = reader.map(reader.at(name));
    return std::string(reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size());
  };
  EXPECT_EQ(mapped("a"), data.substr(0, 7));
  EXPECT_EQ(mapped("b"), data.substr(7));
  EXPECT_EQ(mapped("none"), "");
}

TEST(Safetensors, AFileThatBecameShorterIsAnErrorAndNoSignal) {
  const TestFolder folder;
  SafetensorsWriter writer(folder.path(), "f", {{"a", DType::kU8, {100'000}}}, {});
  writer.append(std::vector<std::byte>(100'000));
  writer.finish();
  const SafetensorsReader reader(folder.path("f"));
  std::filesystem::resize_file(folder.path("f"), 4096);
  EXPECT_NE(user_error([&] { reader.map(reader.at("a")); }).find("ends before byte"), std::string::npos);
}

TEST(Safetensors, RefusesWhatIsNotExactlyTheFormat) {
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "is not JSON"},
      {"", "does not begin with {"},
      {" {}", "does not begin with {"},
      {"\xef\xbb\xbf{}", "does not begin with {"},
      {"[]", "does not begin with {"},
      {R"({"a":)" + ("{" + good + "}}") + "{}", "is not JSON"},
      {R"({"a":{)" + good + R"(},"a":{)" + good + "}}", "names a twice"},
      {R"({"a":{"dtype":"F32",)" + good + "}}", "names dtype twice"},
      {R"({"":{)" + good + "}}", "without a name"},
      {"{\"\xff\":{" + good + "}}", "UTF-8"},
      {R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", "element type F64"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "does not give the data_offsets"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "does not give the shape"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "does not give the dtype"},
      {R"({"a":{"x":1,)" + good + "}}", "unknown field x"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "two data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})", "two data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "negative number"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "the number 2.0"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})",
       "the number 18446744073709551615"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", "impossible shape"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", "more than 8 axes"},
      {R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", "a list where none belongs"},
      {R"({"a":{"dtype":{},"shape":[2],"data_offsets":[0,8]}})", "an object where none belongs"},
      {R"({"a":{"dtype":null,"shape":[2],"data_offsets":[0,8]}})", "null where none belongs"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "needs 12 bytes, but has 8"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "data that ends at 8"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "bytes 8 to 0"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "begins at byte 4 of the data; 0 expected"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "end at byte 4 of the data, the file at 8"},
      {R"({"a":{)" + good + R"(},"b":{)" + good + "}}", "begins at byte 0 of the data; 8 expected"},
      {R"({"__metadata__":{"a":1}})", "a number where none belongs"},
      {R"({"__metadata__":"a"})", "a string where none belongs"},
      {R"({"__metadata__":{"a":{}}})", "an object where none belongs"},
      {R"({"a":true})", "a boolean where none belongs"},
      {"{\"a\":" + std::string(100000, '['), "a list where none belongs"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string said = user_error([&bad = text] { parse(file_of(bad, 8)); });
    EXPECT_NE(said.find(expected), std::string::npos) << text.substr(0, 200) << "\n  gives: " << said;
  }
  EXPECT_NE(user_error([] { parse("1234567"); }).find("too few"), std::string::npos);
  EXPECT_NE(user_error([] { parse(std::string(8, '\xff')); }).find("safetensors allows"), std::string::npos);
  EXPECT_NE(user_error([] { parse(file_of("{}", 0).substr(0, 9)); }).find("the file ends at 9"),
            std::string::npos);
  EXPECT_EQ(parse(file_of("{}", 0)).tensors.size(), 0U);
}

TEST(Safetensors, DamagedHeadersGiveErrorsOrTensorsInsideTheFile) {
  const std::string good =
      safetensors_header_bytes(plan_safetensors(
          {{"a", DType::kF32, {3, 2}}, {"b", DType::kI32, {}}, {"c", DType::kBF16, {5}}}, {{"k", "v"}})) +
      std::string(38, 'x');
  ASSERT_EQ(parse(good).tensors.size(), 3U);
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int change = 0; change < 1 + i % 3; ++change)
      bad[random() % bad.size()] = static_cast<char>(random());
    if (i % 5 == 0) bad.resize(random() % bad.size());
    try {
      const SafetensorsHeader header = parse(bad);
      EXPECT_EQ(header.file_bytes(), std::ssize(bad));
    } catch (const UserError&) {
    }
  }
}

TEST(Safetensors, RefusesNamesThatCannotBeWritten) {
  EXPECT_EQ(user_error([] {
              plan_safetensors({{"a", DType::kF32, {}}, {"a", DType::kI64, {}}}, {});
            }),
            "tensor a is given twice");
  EXPECT_THROW(plan_safetensors({{"", DType::kF32, {}}}, {}), UserError);
  EXPECT_THROW(plan_safetensors({{"__metadata__", DType::kF32, {}}}, {}), UserError);
  EXPECT_THROW(plan_safetensors({{"\xff", DType::kF32, {}}}, {}), UserError);
}

TEST(Safetensors, BytesThatAreMissingOrTooManyAreABug) {
  const TestFolder folder;
  SafetensorsWriter writer(folder.path(), "f", {{"a", DType::kF32, {2}}, {"b", DType::kF32, {2}}}, {});
  const std::vector<std::byte> bytes(12);
  EXPECT_THROW(writer.append(bytes), InternalError);
  EXPECT_THROW(writer.finish(), InternalError);
}

TEST(Fold, IsIndependentOfPiecesAndSeesEveryChange) {
  std::mt19937 random(2);
  std::vector<std::byte> bytes(61);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const auto fold_of = [](std::span<const std::byte> all, size_t piece) {
    Fold fold;
    for (size_t i = 0; i < all.size(); i += piece)
      fold.update(all.subspan(i, std::min(piece, all.size() - i)));
    return fold.value();
  };
  const uint64_t whole = fold_of(bytes, bytes.size());
  for (size_t piece = 1; piece < bytes.size(); ++piece) EXPECT_EQ(fold_of(bytes, piece), whole);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> changed = bytes;
      changed[i] ^= std::byte{1} << bit;
      EXPECT_NE(fold_of(changed, 61), whole);
    }
    EXPECT_NE(fold_of(std::span(bytes).first(i), 61), whole);
  }
}

}  // namespace
}  // namespace lockstep
