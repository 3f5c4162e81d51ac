#include "data/jsonl/json_line.h"

#include <simdjson.h>

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace lockstep {
namespace {

namespace json = simdjson::ondemand;

[[noreturn]] void refuse(simdjson::error_code error) {
  if (error == simdjson::UTF8_ERROR) throw RecordProblem("the line is not valid UTF-8");
  std::string_view text = simdjson::error_message(error);
  if (const size_t colon = text.find(": "); colon != std::string_view::npos) text.remove_prefix(colon + 2);
  throw RecordProblem(fmt::format("the line is not valid JSON ({})", text));
}

template <typename T, typename Result>
T checked(Result&& result) {
  T value;
  if (const simdjson::error_code error = std::forward<Result>(result).get(value)) refuse(error);
  return value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() &&
         (text.back() == ' ' || text.back() == '\t' || text.back() == '\r' || text.back() == '\n'))
    text.remove_suffix(1);
  return text;
}

// What stands between the quotes of a string, as it is written.
std::string_view inside(std::string_view token) {
  token = trimmed(token);
  return token.size() < 2 ? std::string_view() : token.substr(1, token.size() - 2);
}

bool has_escape(std::string_view text) { return std::memchr(text.data(), '\\', text.size()) != nullptr; }

// A key up to its closing quote, as it is written.
std::string_view raw_key(const char* at) {
  const char* end = at;
  while (*end != '"') end += *end == '\\' ? 2 : 1;
  return {at, static_cast<size_t>(end - at)};
}

void add_number(json::value value, int column, RecordSink& sink) {
  switch (sink.type(column)) {
    case ValueType::kBytes: {
      const std::string_view token = trimmed(value.raw_json_token());
      checked<double>(value.get_double());  // it is one
      sink.add_text(column, token);
      return;
    }
    case ValueType::kF32:
    case ValueType::kF64: sink.add_real(column, checked<double>(value.get_double())); return;
    default: {
      int64_t whole = 0;
      if (value.get_int64().get(whole) == simdjson::SUCCESS)
        sink.add_whole(column, whole);
      else
        sink.add_real(column, checked<double>(value.get_double()));
    }
  }
}

void add_scalar(json::value value, int column, RecordSink& sink) {
  json::json_type type;
  if (value.type().get(type) != simdjson::SUCCESS) {
    // Python writes it, JSON does not know it.
    const std::string_view token = trimmed(value.raw_json_token());
    if (token != "NaN") throw RecordProblem(fmt::format("'{}' is not a JSON value", token.substr(0, 40)));
    sink.add_real(column, std::nan(""));
    return;
  }
  switch (type) {
    case json::json_type::number: add_number(value, column, sink); return;
    case json::json_type::string: {
      const std::string_view text = inside(value.raw_json_token());
      if (has_escape(text))
        sink.add_text(column, checked<std::string_view>(value.get_string()), true);
      else
        sink.add_text(column, text);
      return;
    }
    case json::json_type::boolean: {
      const bool truth = checked<bool>(value.get_bool());
      if (sink.type(column) == ValueType::kBytes)
        sink.add_text(column, truth ? "1" : "0");  // as in formats that have no such values
      else
        sink.add_whole(column, truth ? 1 : 0);
      return;
    }
    case json::json_type::null: throw RecordProblem("null in a list; leave the value out");
    default: throw RecordProblem("a list or an object in a list, which no column can hold");
  }
}

// A list or an object as the text that it is.
std::string_view raw_text(json::value value, json::json_type type) {
  if (type == json::json_type::array) {
    auto array = checked<json::array>(value.get_array());
    return trimmed(checked<std::string_view>(array.raw_json()));
  }
  auto object = checked<json::object>(value.get_object());
  return trimmed(checked<std::string_view>(object.raw_json()));
}

void add_value(json::value value, std::string_view key, int column, RecordSink& sink) {
  json::json_type type;
  const bool known = value.type().get(type) == simdjson::SUCCESS;
  const bool nested = known && (type == json::json_type::array || type == json::json_type::object);
  if (known && type == json::json_type::null) {
    if (!checked<bool>(value.is_null())) throw RecordProblem(fmt::format("'{}' is not a JSON value", key));
    sink.set_missing(column);
  } else if (nested && sink.type(column) == ValueType::kBytes && sink.width(column) == 1) {
    sink.add_text(column, raw_text(value, type));
  } else if (nested && type == json::json_type::array && sink.width(column) != 1) {
    for (auto element : checked<json::array>(value.get_array()))
      add_scalar(checked<json::value>(element), column, sink);
  } else if (nested) {
    throw RecordProblem(fmt::format("column '{}' is {}, but {} is wanted", key,
                                    type == json::json_type::array ? "a list" : "an object",
                                    sink.width(column) == 1 ? "one number" : "a list"));
  } else {
    add_scalar(value, column, sink);
  }
}

void survey_scalar(json::value value, FieldSurvey::Seen& seen) {
  json::json_type type;
  if (value.type().get(type) != simdjson::SUCCESS) {
    seen.real = true;  // NaN
    return;
  }
  if (type == json::json_type::boolean) {
    seen.truth = true;
  } else if (type == json::json_type::number) {
    int64_t whole = 0;
    if (value.get_int64().get(whole) == simdjson::SUCCESS) {
      seen.whole = true;
      seen.beyond_double = seen.beyond_double || FieldSurvey::is_beyond_double(whole);
    } else {
      seen.real = true;
      const std::string_view token = trimmed(value.raw_json_token());
      if (token.find_first_of(".eE") == std::string_view::npos) seen.beyond_whole = true;
    }
  } else {
    seen.text = true;
  }
}

void survey_value(json::value value, FieldSurvey::Seen& seen) {
  json::json_type type;
  const bool known = value.type().get(type) == simdjson::SUCCESS;
  if (known && type == json::json_type::null) return;
  if (!known || type != json::json_type::array) {
    survey_scalar(value, seen);
    FieldSurvey::count(seen, 1);
    return;
  }
  int64_t values = 0;
  for (auto element : checked<json::array>(value.get_array())) {
    survey_scalar(checked<json::value>(element), seen);
    ++values;
  }
  seen.list = true;
  FieldSurvey::count(seen, values);
}

}  // namespace

struct JsonLineReader::Parser {
  json::parser parser;

  // Calls take(slot, key, escaped key field, value) for each member.
  template <typename Take>
  void for_each_member(std::string_view line, const Take& take) {
    auto document = checked<json::document>(parser.iterate(
        simdjson::padded_string_view(line.data(), line.size(), line.size() + simdjson::SIMDJSON_PADDING)));
    json::object object;
    if (const auto error = document.get_object().get(object)) {
      if (error == simdjson::INCORRECT_TYPE)
        throw RecordProblem("the line is not a JSON object; write one {...} on each line");
      refuse(error);
    }
    size_t slot = 0;
    for (auto member : object) {
      auto field = checked<json::field>(std::move(member));
      take(slot++, field);
    }
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
      throw RecordProblem("text follows the JSON object; write one {...} on each line");
  }
};

JsonLineReader::JsonLineReader() : parser_(std::make_unique<Parser>()) {}
JsonLineReader::~JsonLineReader() = default;

void JsonLineReader::read(std::string_view line, RecordSink& sink) {
  parser_->for_each_member(line, [&](size_t slot, json::field& field) {
    const char* raw = field.key().raw();
    const RecordSink::Guess* guess = sink.guess(slot);
    int column = RecordSink::kUnwanted;
    // Within what can be read behind the line.
    constexpr size_t kLongestGuess = simdjson::SIMDJSON_PADDING - 4;
    if (guess != nullptr && !guess->key.empty() && guess->key.size() <= kLongestGuess &&
        raw[guess->key.size()] == '"' && std::memcmp(raw, guess->key.data(), guess->key.size()) == 0) {
      column = guess->column;
    } else {
      const std::string_view key = raw_key(raw);
      column = has_escape(key) ? sink.column_named(checked<std::string_view>(field.unescaped_key()))
                               : sink.column_of(slot, key);
    }
    if (column == RecordSink::kUnwanted) return;
    double real = 0;
    const bool number = sink.takes_reals(column) && field.value().get_double().get(real) == simdjson::SUCCESS;
    if (number && sink.take_real(column, real)) return;
    sink.begin_cell(column);
    if (number)
      sink.add_real(column, real);
    else
      add_value(field.value(), sink.name(column), column, sink);
    sink.end_cell(column);
  });
  sink.end_record();
}

void JsonLineReader::survey(std::string_view line, FieldSurvey& survey) {
  parser_->for_each_member(line, [&](size_t, json::field& field) {
    FieldSurvey::Seen& seen = survey.seen(checked<std::string_view>(field.unescaped_key()));
    survey_value(field.value(), seen);
  });
}

}  // namespace lockstep
