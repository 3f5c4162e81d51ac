#include "data/select/table_selection.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "data/format/value_text.h"
#include "data/order/selection.h"
#include "data/source/wrapped_source.h"

namespace lockstep {
namespace {

using Set = std::shared_ptr<const RecordSet>;

void add(const std::vector<BlockField>& columns, std::vector<BlockField>& all) {
  for (const BlockField& column : columns)
    if (std::none_of(all.begin(), all.end(), [&](const BlockField& f) { return f.name == column.name; }))
      all.push_back(column);
}

// The key of a record's entity as text: what is missing is an entity too.
std::string key_of(const BlockColumn& column, size_t record) {
  if (column.is_missing(record)) return {};
  return std::visit([&](const auto& values) { return category_text(values[record]); }, column.values);
}

template <typename Keeps>
RecordTest entity_test(std::string text, const std::string& column, const Keeps& keeps) {
  return {std::move(text), {{column, ValueType::kBytes, 1}}, [column, keeps](const ColumnBlock& block) {
            const BlockColumn& keys = block.column(column);
            std::vector<uint8_t> marks(static_cast<size_t>(block.records));
            for (size_t r = 0; r < marks.size(); ++r) marks[r] = keeps(key_of(keys, r)) ? 1 : 0;
            return marks;
          }};
}

class Selector {
 public:
  Selector(const std::shared_ptr<const ShardSet>& all, const SelectionOptions& options,
           const OpenColumns& open, const KeptSetOptions& kept)
      : all_(all), options_(options), open_(open), kept_(kept) {}

  TableSelection select() {
    const RecordSet filtered = without_unusable(filter());
    RecordSet train = filtered;
    TableSelection selection;
    if (options_.split || options_.hold_out > 0) {
      train = options_.split ? filtered & side() : held_in(filtered);
      const RecordSet held = filtered & train.complement();
      check_sides(train.size(), held.size());
      selection.eval = part(held, "eval");
    }
    if (options_.subsample) subsample(train, selection);
    selection.train = part(train, "train");
    return selection;
  }

 private:
  Set marked(const RecordTest& test) const { return kept_set(*all_, test, open_, kept_); }
  bool lenient() const { return all_->format().options().bad == BadRecords::kSkip; }

  RecordSet filter() const {
    const int64_t records = all_->manifest().records();
    if (options_.filter.empty()) return RecordSet::all(records);
    const Filter filter(options_.filter);
    RecordSet set = *marked(filter_test(filter, lenient()));
    if (set.size() == 0)
      throw UserError("none of {} records matches the filter {}", records, options_.filter);
    log_info("the filter keeps {} of {} records", set.size(), records);
    return set;
  }

  // What the filter leaves out does not count as bad.
  RecordSet without_unusable(const RecordSet& filtered) {
    if (!options_.usable) return filtered;
    const UsableRecords& usable = *options_.usable;
    RecordSet left = filtered & *usable.set;
    const int64_t bad = filtered.size() - left.size() + all_->bad_count();
    const int64_t records = filtered.size() + all_->bad_count();
    if (left.size() == filtered.size()) return left;
    leaves_out_ = true;
    const std::string first = usable.problem((filtered & usable.set->complement())[0]);
    if (static_cast<double>(bad) > usable.most_bad * static_cast<double>(records))
      throw UserError(
          "{} of {} records cannot be used, more than the share of {} that is allowed; the first: {}", bad,
          records, usable.most_bad, first);
    log_warn("{} of {} records are left out; the first: {}", bad, records, first);
    return left;
  }

  RecordSet side() const {
    const EntitySplit split(options_.split->seed, {1 - options_.split->eval, options_.split->eval});
    return *marked(entity_test(options_.split->text(), options_.split->column,
                               [split](const std::string& key) { return split.part_of(key) == 0; }));
  }

  RecordSet held_in(const RecordSet& filtered) const {
    return filtered.first(filtered.size() - held_out(filtered.size(), options_.hold_out));
  }

  void check_sides(int64_t train, int64_t held) const {
    if (train > 0 && held > 0) return;
    throw UserError(
        "splitting by '{}' leaves {} records to train on and {} to evaluate on; it has too few values, use "
        "another column or share",
        options_.split ? options_.split->column : "", train, held);
  }

  void subsample(RecordSet& train, TableSelection& selection) const {
    const TableSubsample& wanted = *options_.subsample;
    const Set where = marked(filter_test(Filter(wanted.where), lenient()));
    const RecordSet common = train & *where;
    const RecordSet kept = common & sampled(common);
    const int64_t others = train.size() - common.size();
    train = (train & where->complement()) | kept;
    if (train.size() == 0) throw UserError("down-sampling leaves no record to train on; keep more");
    log_info("down-sampling keeps {} of the {} records that match, and {} others", kept.size(), common.size(),
             others);
    if (!wanted.reweight) return;
    // Divided by the mean, worked out once from counts: the same on every worker.
    const double weight = 1 / wanted.keep;
    const double mean = (static_cast<double>(others) + weight * static_cast<double>(kept.size())) /
                        static_cast<double>(train.size());
    selection.weights = std::make_shared<RecordWeights>(
        RecordWeights{where, static_cast<float>(weight / mean), static_cast<float>(1 / mean), wanted.text()});
  }

  RecordSet sampled(const RecordSet& common) const {
    const TableSubsample& wanted = *options_.subsample;
    const DownSample sample(wanted.seed, wanted.keep);
    if (!wanted.by.empty())
      return *marked(entity_test(fmt::format("sample 1 {} {} {}", wanted.by, wanted.keep, wanted.seed),
                                 wanted.by, [sample](const std::string& key) { return sample.keeps(key); }));
    std::vector<uint64_t> bits(static_cast<size_t>((common.records() + 63) / 64));
    for (int64_t record = 0; record < common.records(); ++record)
      bits[static_cast<size_t>(record / 64)] |= uint64_t{sample.keeps(record)} << (record % 64);
    return {std::move(bits), common.records()};
  }

  std::shared_ptr<const ShardSet> part(const RecordSet& set, const char* side) const {
    std::string definition = side;
    if (!options_.filter.empty()) definition += fmt::format("\nfilter {}", Filter(options_.filter).text());
    if (leaves_out_) definition += fmt::format("\nusable {}", options_.usable->text);
    if (options_.split) definition += fmt::format("\n{}", options_.split->text());
    if (!options_.split && options_.hold_out > 0) definition += fmt::format("\nhold {}", options_.hold_out);
    if (options_.subsample && side == std::string_view("train"))
      definition += fmt::format("\n{}", options_.subsample->text());
    return std::make_shared<ShardSet>(all_->select(std::make_shared<RecordSet>(set), definition));
  }

  const std::shared_ptr<const ShardSet>& all_;
  const SelectionOptions& options_;
  const OpenColumns& open_;
  const KeptSetOptions& kept_;
  bool leaves_out_ = false;  // records that cannot be used, beside those that the filter leaves out
};

}  // namespace

std::string TableSplit::text() const { return fmt::format("split {} {} {}", column, eval, seed); }

std::string TableSubsample::text() const {
  return fmt::format("subsample 1 {} {} {} {} {}", keep, reweight, seed, by, Filter(where).text());
}

std::vector<BlockField> SelectionOptions::columns() const {
  std::vector<BlockField> all;
  if (!filter.empty()) add(Filter(filter).columns(), all);
  if (subsample) {
    add(Filter(subsample->where).columns(), all);
    if (!subsample->by.empty()) add({{subsample->by, ValueType::kBytes, 1}}, all);
  }
  if (split) add({{split->column, ValueType::kBytes, 1}}, all);
  return all;
}

TableSelection select_records(const std::shared_ptr<const ShardSet>& all, const SelectionOptions& options,
                              const OpenColumns& open, const KeptSetOptions& kept) {
  return Selector(all, options, open, kept).select();
}

}  // namespace lockstep
