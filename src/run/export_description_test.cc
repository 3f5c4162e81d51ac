#include "run/export_description.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

TEST(EncodingJson, HasEveryColumnAtItsPlace) {
  const Json json = encoding_json(
      "transform vocabulary 1 channel\nchannel web shop\n"
      "label is it fraud\n"
      "numeric amount log1p=true flag=true mean=3.25 deviation=1e-05 fill=0\n"
      "numeric age of card log1p=false flag=false mean=0 deviation=1 fill=-2 as_is\n"
      "categorical country code buckets=50\n"
      "categorical channel ids=4\n");
  EXPECT_EQ(
      json.dump(),
      R"({"dense":[{"index":0,"column":"amount","log1p":true,"mean":3.25,"deviation":1e-05,"fill":0},)"
      R"({"index":1,"column":"age of card","log1p":false,"mean":0,"deviation":1,"fill":-2,"as_is":true},)"
      R"({"index":2,"column":"amount","missing":true}],)"
      R"("ids":[{"index":0,"column":"country code","buckets":50},{"index":1,"column":"channel","ids":4}],)"
      R"("label":"is it fraud","transforms":["transform vocabulary 1 channel","channel web shop"]})");
}

TEST(EncodingJson, SaysWhatTheAnswersMean) {
  const Json json = encoding_json(
      "label kind\nnumeric size log1p=false flag=false mean=0 deviation=1 fill=0\n"
      "labels "
      "{\"column\":\"kind\",\"task\":\"classification\",\"kind\":\"texts\",\"classes\":[\"a\",\"b\",\"c\"]}"
      "\n");
  EXPECT_EQ(json["labels"]["classes"].dump(), R"(["a","b","c"])");
  EXPECT_EQ(json["label"], "kind");
  EXPECT_FALSE(json.contains("other"));
}

TEST(EncodingJson, RefusesAColumnThatItCannotRead) {
  EXPECT_THROW(encoding_json("label y\nnumeric amount scaled\n"), UserError);
  EXPECT_THROW(encoding_json("label y\ncategorical country\n"), UserError);
}

TEST(PortText, NamesWhatIsOpen) {
  EXPECT_EQ(port_text({"x", OnnxType::kFloat, {{1, true}, {13, false}}}), "float32[batch,13]");
  EXPECT_EQ(port_text({"x", OnnxType::kInt64, {{7, true}}}), "int64[7*batch]");
}

}  // namespace
}  // namespace lockstep
