#include <algorithm>
#include <map>

#include "backend/cuda/kernels/tables.h"
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;

size_t at(int64_t i) { return static_cast<size_t>(i); }

// A few rows are very frequent, most are rare, some are the padding id -1.
std::vector<double> skewed_ids(int64_t n, int64_t rows, bool padding) {
  Draw draw(61);
  std::vector<double> ids;
  for (int64_t i = 0; i < n; ++i) {
    const double u = draw.uniform();
    const int64_t id = u < 0.3    ? std::min<int64_t>(3, rows - 1)
                       : u < 0.5  ? rows - 1
                       : u < 0.55 ? 0
                                  : draw.below(rows);
    ids.push_back(padding && i % 11 == 4 ? -1.0 : static_cast<double>(id));
  }
  return ids;
}

void check_gradients(Checks& c, DType dtype, bool wide, int64_t n, int64_t rows, int64_t C) {
  const std::vector<double> ids = skewed_ids(n, rows, true);
  const Tensor id_list = values(wide ? DType::kI64 : DType::kI32, ids);
  const Tensor dy = random_tensor(dtype, n * C, 62), into = random_tensor(dtype, rows * C, 63);
  std::vector<double> sums(at(rows * C)), added;
  std::map<int64_t, std::vector<double>> units;
  for (int64_t i = 0; i < n; ++i) {
    const auto id = static_cast<int64_t>(ids[at(i)]);
    if (id < 0) continue;
    auto& unit = units.try_emplace(id, at(C), 0.0).first->second;
    for (int64_t k = 0; k < C; ++k) sums[at(id * C + k)] += dy[i * C + k], unit[at(k)] += dy[i * C + k];
  }
  added = sums;
  for (int64_t i = 0; i < rows * C; ++i) added[at(i)] += into[i];
  const Ids list{id_list.data(), wide, n, rows, -1};
  RowSums how{.dtype = dtype, .columns = C};
  DeviceBuffer sort(sort_ids_workspace(list)), partials(row_sums_workspace(list, how)), bad(8);
  require(cudaMemset(bad.data(), 0xff, 8), "memset");
  Tensor table = tensor(dtype, rows * C);
  const std::string name = std::string(lockstep::name_of(dtype)) + (wide ? " i64" : " i32") + " ids " +
                           std::to_string(n) + " rows " + std::to_string(rows) + "x" + std::to_string(C);
  c.check("embedding_grad " + name, {{&table, &sums, "table"}}, bound_of(dtype), [&] {
    require(cudaMemsetAsync(table.data(), 0, static_cast<size_t>(table.device.bytes()), c.stream), "zero");
    row_sums(c.stream, list, sort_ids(c.stream, list, sort.data(), bad.as<BadId>()), how, dy.data(),
             table.data(), partials.data());
  });
  how.mode = RowMode::kAdd;
  c.check(
      "embedding_grad into " + name, {{&table, &added, "table"}}, bound_of(dtype),
      [&] {
        row_sums(c.stream, list, sort_ids(c.stream, list, sort.data(), bad.as<BadId>()), how, dy.data(),
                 table.data(), partials.data());
      },
      [&] {
        require(cudaMemcpy(table.data(), into.data(), static_cast<size_t>(table.device.bytes()),
                           cudaMemcpyDeviceToDevice),
                "copy");
      });
  if (dtype != DType::kF32) return;
  std::vector<double> row_ids(at(n), -1.0), row_grads(at(n * C));
  int64_t unit = 0;
  for (const auto& [id, sum] : units) {
    row_ids[at(unit)] = static_cast<double>(id);
    std::copy(sum.begin(), sum.end(), row_grads.begin() + unit++ * C);
  }
  Tensor out_ids = tensor(DType::kI32, n), out = tensor(DType::kF32, n * C);
  how.mode = RowMode::kStore;
  how.by_unit = true;
  c.check(
      "row_gradient " + name, {{&out_ids, &row_ids, "row_ids"}, {&out, &row_grads, "row_grads"}}, 1e-5, [&] {
        require(cudaMemsetAsync(out.data(), 0, static_cast<size_t>(out.device.bytes()), c.stream), "zero");
        const SortedIds sorted = sort_ids(c.stream, list, sort.data(), bad.as<BadId>());
        unit_ids(c.stream, list, sorted, out_ids.device.as<int32_t>());
        row_sums(c.stream, list, sorted, how, dy.data(), out.data(), partials.data());
      });
}

void check_bags(Checks& c, DType dtype, bool mean) {
  const int64_t bags = 50, length = 13, rows = 40, C = 24;
  const std::vector<double> ids = skewed_ids(bags * length, rows, true);
  const Tensor list_tensor = values(DType::kI32, ids), table = random_tensor(dtype, rows * C, 64),
               dy = random_tensor(dtype, bags * C, 65);
  std::vector<double> out_w(at(bags * C)), dtable_w(at(rows * C));
  for (int64_t b = 0; b < bags; ++b) {
    double members = 0;
    for (int64_t i = 0; i < length; ++i) members += ids[at(b * length + i)] >= 0;
    const double factor = mean && members > 0 ? 1 / members : 1.0;
    for (int64_t i = 0; i < length; ++i) {
      const auto id = static_cast<int64_t>(ids[at(b * length + i)]);
      for (int64_t k = 0; id >= 0 && k < C; ++k) {
        out_w[at(b * C + k)] += table[id * C + k] * factor;
        dtable_w[at(id * C + k)] += dy[b * C + k] * factor;
      }
    }
  }
  const Ids list{list_tensor.data(), false, bags * length, rows, -1};
  Tensor out = tensor(dtype, bags * C), dtable = tensor(dtype, rows * C), weights = tensor(DType::kF32, bags);
  DeviceBuffer bad(8);
  require(cudaMemset(bad.data(), 0xff, 8), "memset");
  const std::string name = std::string(lockstep::name_of(dtype)) + (mean ? " mean" : " sum");
  c.check("embedding_bag " + name, {{&out, &out_w, "y"}}, bound_of(dtype), [&] {
    embedding_bag(c.stream, list, length, mean, dtype, C, table.data(), out.data(), bad.as<BadId>());
  });
  const RowSums how{
      .dtype = dtype, .columns = C, .terms_per_row = length, .weights = mean ? weights.f32() : nullptr};
  DeviceBuffer sort(sort_ids_workspace(list)), partials(row_sums_workspace(list, how));
  c.check("embedding_bag_grad " + name, {{&dtable, &dtable_w, "table"}}, bound_of(dtype), [&] {
    require(cudaMemsetAsync(dtable.data(), 0, static_cast<size_t>(dtable.device.bytes()), c.stream), "zero");
    if (mean) bag_weights(c.stream, list, length, weights.f32());
    row_sums(c.stream, list, sort_ids(c.stream, list, sort.data(), bad.as<BadId>()), how, dy.data(),
             dtable.data(), partials.data());
  });
}

void check_gather(Checks& c, DType dtype, int64_t outer, int64_t inner) {
  const int64_t rows = 30, n = 71;
  Draw draw(66);
  std::vector<double> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<double>(draw.below(rows)));
  const Tensor list_tensor = values(DType::kI64, ids), table = random_tensor(dtype, outer * rows * inner, 67);
  std::vector<double> want;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < inner; ++k)
        want.push_back(table[(o * rows + static_cast<int64_t>(ids[at(i)])) * inner + k]);
  Tensor out = tensor(dtype, outer * n * inner);
  DeviceBuffer bad(8);
  require(cudaMemset(bad.data(), 0xff, 8), "memset");
  const Ids list{list_tensor.data(), true, n, rows, -1};
  c.check("gather " + std::string(lockstep::name_of(dtype)) + " " + std::to_string(outer) + "x" +
              std::to_string(inner),
          {{&out, &want, "y"}}, 0, [&] {
            gather_rows(c.stream, list, lockstep::size_of(dtype), outer, inner, table.data(), out.data(),
                        bad.as<BadId>());
          });
  std::vector<double> wrong = ids;
  wrong[17] = 30;
  const Tensor wrong_tensor = values(DType::kI64, wrong);
  gather_rows(c.stream, {wrong_tensor.data(), true, n, rows, -1}, lockstep::size_of(dtype), outer, inner,
              table.data(), out.data(), bad.as<BadId>());
  require(cudaDeviceSynchronize(), "gather");
  unsigned long long position = 0;
  require(cudaMemcpy(&position, bad.data(), 8, cudaMemcpyDeviceToHost), "copy");
  c.expect("gather names the bad position", position == 17, std::to_string(position));
}

}  // namespace

void check_tables(Checks& c) {
  for (const DType dtype : kFloating) {
    check_gather(c, dtype, 1, 64);
    check_gather(c, dtype, 3, 7);
    check_gradients(c, dtype, false, 3000, 50, 64);
    check_gradients(c, dtype, true, 5000, 1000, 33);
    check_gradients(c, dtype, false, 130, 2, 8);
    check_bags(c, dtype, false);
    check_bags(c, dtype, true);
  }
}

}  // namespace kernel_check
