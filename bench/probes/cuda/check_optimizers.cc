#include "backend/cuda/kernels/optimizer.h"
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;

size_t at(int64_t i) { return static_cast<size_t>(i); }

struct State {
  Tensor p, g, m, v, edges, scale, lr, step;
  Tensor p0, m0, v0;
  double s, rate, t;
  explicit State(int64_t n, double t_ = 5) {
    p0 = random_tensor(DType::kF32, n, 71), p = random_tensor(DType::kF32, n, 71);
    m0 = random_tensor(DType::kF32, n, 72, -0.1, 0.1), m = random_tensor(DType::kF32, n, 72, -0.1, 0.1);
    v0 = random_tensor(DType::kF32, n, 73, 0, 0.01), v = random_tensor(DType::kF32, n, 73, 0, 0.01);
    g = random_tensor(DType::kF32, n, 74);
    edges = values(DType::kI64, {100, 300, 1001, 1003});
    scale = values(DType::kF32, {0.7});
    lr = values(DType::kF32, {0.01});
    step = values(DType::kI64, {t_});
    s = scale[0];
    rate = lr[0];
    t = t_;
  }
  bool decays(int64_t i) const { return !((i >= 100 && i < 300) || (i >= 1001 && i < 1003)); }
  void reset() {
    p.host = p0.host, m.host = m0.host, v.host = v0.host;
    p.upload(), m.upload(), v.upload();
  }
  FlatState flat(bool momentum, bool second, void* rounded = nullptr) const {
    return {p.f32(), g.f32(), momentum ? m.f32() : nullptr, second ? v.f32() : nullptr, rounded, p.count()};
  }
  StepScalars scalars() const { return {scale.f32(), lr.f32(), step.device.as<int64_t>()}; }
  NoDecay no_decay() const { return {edges.device.as<int64_t>(), 4}; }
};

Tensor clone(const Tensor& t) { return values(t.dtype, t.host); }

void check_flat(Checks& c) {
  const int64_t n = 20003;
  const AdamAttributes a{0.9, 0.95, 1e-8, 0.1};
  State x(n);
  std::vector<double> p(at(n)), m(at(n)), v(at(n)), rounded(at(n));
  Tensor p16 = tensor(DType::kBF16, n);
  for (const bool decoupled : {false, true}) {
    const double b1 = 1 - std::pow(a.beta1, x.t), b2 = 1 - std::pow(a.beta2, x.t);
    for (int64_t i = 0; i < n; ++i) {
      const double wd = x.decays(i) ? a.weight_decay : 0;
      const double g = x.g[i] * x.s + (decoupled ? 0 : wd * x.p0[i]);
      m[at(i)] = a.beta1 * x.m0[i] + (1 - a.beta1) * g;
      v[at(i)] = a.beta2 * x.v0[i] + (1 - a.beta2) * g * g;
      p[at(i)] = x.p0[i] * (decoupled ? 1 - x.rate * wd : 1) -
                 x.rate / b1 * m[at(i)] / (std::sqrt(v[at(i)]) / std::sqrt(b2) + a.epsilon);
      rounded[at(i)] = p[at(i)];
    }
    c.check(
        decoupled ? "adamw" : "adam", {{&x.p, &p, "p"}, {&x.m, &m, "m"}, {&x.v, &v, "v"}}, 1e-6,
        [&] { adam(c.stream, x.flat(true, true), x.scalars(), x.no_decay(), a, decoupled); },
        [&] { x.reset(); });
    c.check(
        decoupled ? "adamw with bf16 copy" : "adam with bf16 copy", {{&p16, &rounded, "p_bf16"}}, 3e-3,
        [&] { adam(c.stream, x.flat(true, true, p16.data()), x.scalars(), x.no_decay(), a, decoupled); },
        [&] { x.reset(); });
  }
  for (const int mode : {0, 1, 2}) {
    const double momentum = mode == 0 ? 0 : 0.9, wd = 0.1;
    for (int64_t i = 0; i < n; ++i) {
      const double g = x.g[i] * x.s + (x.decays(i) ? wd * x.p0[i] : 0);
      m[at(i)] = mode == 0 ? x.m0[i] : momentum * x.m0[i] + g;
      const double direction = mode == 0 ? g : mode == 2 ? g + momentum * m[at(i)] : m[at(i)];
      p[at(i)] = x.p0[i] - x.rate * direction;
    }
    c.check(
        mode == 0   ? "sgd"
        : mode == 1 ? "sgd momentum"
                    : "sgd nesterov",
        {{&x.p, &p, "p"}, {&x.m, &m, "m"}}, 1e-6,
        [&] {
          sgd(c.stream, x.flat(mode > 0, false), x.scalars(), x.no_decay(), static_cast<float>(momentum),
              mode == 2, static_cast<float>(wd));
        },
        [&] { x.reset(); });
  }
  for (int64_t i = 0; i < n; ++i) {
    const double g = x.g[i] * x.s, direction = a.beta1 * x.m0[i] + (1 - a.beta1) * g;
    m[at(i)] = a.beta2 * x.m0[i] + (1 - a.beta2) * g;
    p[at(i)] = x.p0[i] * (x.decays(i) ? 1 - x.rate * a.weight_decay : 1) - x.rate * (direction > 0   ? 1
                                                                                     : direction < 0 ? -1
                                                                                                     : 0);
  }
  c.check(
      "lion", {{&x.p, &p, "p"}, {&x.m, &m, "m"}}, 1e-4,
      [&] { lion(c.stream, x.flat(true, false), x.scalars(), x.no_decay(), a); }, [&] { x.reset(); });
}

void check_lamb(Checks& c) {
  const int64_t n = 20003;
  const AdamAttributes a{0.9, 0.95, 1e-6, 0.1};
  State x(n);
  // Three tensors with padding between them.
  const std::vector<std::vector<int64_t>> tensors{{0, 10000, 1}, {10240, 10300, 0}, {10304, 20003, 1}};
  std::vector<LambPiece> pieces;
  std::vector<LambTensor> list;
  std::vector<double> p = x.p0.host, m = x.m0.host, v = x.v0.host;
  const double b1 = 1 - std::pow(a.beta1, x.t), b2 = 1 - std::pow(a.beta2, x.t);
  for (size_t k = 0; k < tensors.size(); ++k) {
    const int64_t begin = tensors[k][0], end = tensors[k][1];
    list.push_back({static_cast<int32_t>(pieces.size()), 0});
    for (int64_t at_ = begin; at_ < end; at_ += kLambPiece) {
      pieces.push_back({at_, std::min(end, at_ + kLambPiece), static_cast<int32_t>(k),
                        static_cast<int32_t>(tensors[k][2])});
      ++list.back().pieces;
    }
    double pp = 0, uu = 0;
    std::vector<double> u(at(n));
    for (int64_t i = begin; i < end; ++i) {
      const double g = x.g[i] * x.s;
      m[at(i)] = a.beta1 * x.m0[i] + (1 - a.beta1) * g;
      v[at(i)] = a.beta2 * x.v0[i] + (1 - a.beta2) * g * g;
      u[at(i)] = m[at(i)] / b1 / (std::sqrt(v[at(i)] / b2) + a.epsilon) +
                 (tensors[k][2] ? a.weight_decay * x.p0[i] : 0);
      pp += x.p0[i] * x.p0[i], uu += u[at(i)] * u[at(i)];
    }
    for (int64_t i = begin; i < end; ++i)
      p[at(i)] = x.p0[i] - x.rate * std::sqrt(pp) / std::sqrt(uu) * u[at(i)];
  }
  DeviceBuffer piece_list(static_cast<int64_t>(pieces.size() * sizeof(LambPiece))),
      tensor_list(static_cast<int64_t>(list.size() * sizeof(LambTensor)));
  require(
      cudaMemcpy(piece_list.data(), pieces.data(), pieces.size() * sizeof(LambPiece), cudaMemcpyHostToDevice),
      "copy");
  require(
      cudaMemcpy(tensor_list.data(), list.data(), list.size() * sizeof(LambTensor), cudaMemcpyHostToDevice),
      "copy");
  DeviceBuffer workspace(lamb_workspace(static_cast<int64_t>(pieces.size()), 3));
  c.check(
      "lamb", {{&x.p, &p, "p"}, {&x.m, &m, "m"}, {&x.v, &v, "v"}}, 1e-6,
      [&] {
        lamb(c.stream, x.flat(true, true), x.scalars(), a, piece_list.as<LambPiece>(),
             static_cast<int64_t>(pieces.size()), tensor_list.as<LambTensor>(), 3, workspace.data());
      },
      [&] { x.reset(); });
}

void check_adafactor(Checks& c) {
  const int64_t rows = 77, columns = 130;
  State x(rows * columns);
  const AdafactorAttributes a{1e-30, 1.0, 0.1};
  const double beta2 = 1 - std::pow(x.t, -0.8);
  Tensor row = random_tensor(DType::kF32, rows, 75, 0.01, 0.02),
         column = random_tensor(DType::kF32, columns, 76, 0.01, 0.02);
  const Tensor row0 = clone(row), column0 = clone(column);
  std::vector<double> p = x.p0.host, r(at(rows)), k(at(columns)), v(at(rows * columns));
  const auto square = [&](int64_t i) { return x.g[i] * x.s * x.g[i] * x.s + a.epsilon; };
  double mean = 0;
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j) sum += square(i * columns + j);
    r[at(i)] = beta2 * row0[i] + (1 - beta2) * sum / static_cast<double>(columns);
    mean += r[at(i)] / static_cast<double>(rows);
  }
  for (int64_t j = 0; j < columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += square(i * columns + j);
    k[at(j)] = beta2 * column0[j] + (1 - beta2) * sum / static_cast<double>(rows);
  }
  const auto apply = [&](const auto& moment) {
    double squares = 0;
    std::vector<double> u;
    for (int64_t i = 0; i < rows * columns; ++i) {
      u.push_back(x.g[i] * x.s / std::sqrt(moment(i)));
      squares += u.back() * u.back();
    }
    const double size =
        x.rate / std::max(1.0, std::sqrt(squares / static_cast<double>(rows * columns)) / a.clip);
    for (int64_t i = 0; i < rows * columns; ++i)
      p[at(i)] = x.p0[i] * (1 - x.rate * a.weight_decay) - size * u[at(i)];
  };
  apply([&](int64_t i) { return r[at(i / columns)] / mean * k[at(i % columns)]; });
  DeviceBuffer workspace(adafactor_workspace(rows, columns));
  c.check(
      "adafactor matrix", {{&x.p, &p, "p"}, {&row, &r, "rows"}, {&column, &k, "columns"}}, 1e-5,
      [&] {
        adafactor_matrix(c.stream, x.p.f32(), x.g.f32(), rows, columns, row.f32(), column.f32(), x.scalars(),
                         a, workspace.data());
      },
      [&] {
        x.reset();
        row.host = row0.host, column.host = column0.host;
        row.upload(), column.upload();
      });
  for (int64_t i = 0; i < rows * columns; ++i) v[at(i)] = beta2 * x.v0[i] + (1 - beta2) * square(i);
  apply([&](int64_t i) { return v[at(i)]; });
  c.check(
      "adafactor vector", {{&x.p, &p, "p"}, {&x.v, &v, "v"}}, 1e-5,
      [&] {
        adafactor_vector(c.stream, x.p.f32(), x.g.f32(), rows * columns, x.v.f32(), x.scalars(), a,
                         workspace.data());
      },
      [&] { x.reset(); });
}

void check_norm(Checks& c) {
  const Tensor a = random_tensor(DType::kF32, 200003, 77), b = random_tensor(DType::kF32, 1000, 78),
               narrow = random_tensor(DType::kBF16, 200003, 79);
  const auto squares = [](const Tensor& t, int64_t from = 0) {
    double sum = 0;
    for (int64_t i = from; i < t.count(); ++i) sum += t[i] * t[i];
    return sum;
  };
  const NormBuffer wide{a.data(), DType::kF32, a.count()}, few{b.data(), DType::kF32, b.count()},
      half{narrow.data(), DType::kBF16, narrow.count()},
      odd{static_cast<char*>(narrow.data()) + 2, DType::kBF16, narrow.count() - 1};
  struct Case {
    const char* name;
    std::vector<NormBuffer> buffers;
    double squares;
  };
  for (const Case& one :
       {Case{"global_norm", {wide, few}, squares(a) + squares(b)},
        Case{"global_norm of bf16", {half}, squares(narrow)},
        Case{"global_norm of bf16 and f32", {few, half, wide}, squares(a) + squares(b) + squares(narrow)},
        Case{"global_norm of bf16 from an odd address", {odd}, squares(narrow, 1)}}) {
    DeviceBuffer workspace(global_norm_workspace(one.buffers));
    Tensor norm = tensor(DType::kF32, 1);
    const std::vector<double> want{std::sqrt(one.squares)};
    c.check(one.name, {{&norm, &want, "norm"}}, 1e-6,
            [&] { global_norm(c.stream, one.buffers, norm.f32(), workspace.data()); });
    // In two halves: the same bits.
    std::vector<int64_t> blocks;
    int64_t all = 0;
    for (const NormBuffer& buffer : one.buffers) {
      blocks.push_back((buffer.count + 1023) / 1024);
      all += blocks.back();
    }
    DeviceBuffer sums(all * 8);
    std::vector<const double*> parts;
    const double* at_part = sums.as<double>();
    for (const int64_t count : blocks) parts.push_back(at_part), at_part += count;
    DeviceBuffer second(norm_of_squares_workspace(blocks.data(), static_cast<int>(blocks.size())));
    Tensor again = tensor(DType::kF32, 1);
    const std::vector<double> whole = norm.read();
    c.check(std::string(one.name) + " in two halves", {{&again, &whole, "norm"}}, 0, [&] {
      square_sums(c.stream, one.buffers, sums.as<double>());
      norm_of_squares(c.stream, parts.data(), blocks.data(), static_cast<int>(blocks.size()), again.f32(),
                      second.data());
    });
  }
}

// Rows that skip steps and are caught up later have the bits of the dense update.
void check_rows_late(Checks& c) {
  const int64_t rows = 40, C = 33, n = rows * C;
  const AdamAttributes a{0.9, 0.95, 1e-8, 0.1};
  State dense(n, 1), late(n, 1);
  Tensor last = tensor(DType::kI32, rows);
  const int64_t capacity = 8;
  Tensor history = tensor(DType::kF32, capacity);
  DeviceBuffer workspace(adamw_catch_up_workspace(capacity)), bad(8);
  require(cudaMemset(bad.data(), 0xff, 8), "memset");
  const NoDecay all{nullptr, 0};
  const RowState state{late.p.f32(), late.m.f32(), late.v.f32(), last.device.as<int32_t>(), rows, C};
  // Fresh moments, so that replayed steps agree with dense ones from the first on.
  for (State* s : {&dense, &late}) {
    std::fill(s->m0.host.begin(), s->m0.host.end(), 0.0);
    std::fill(s->v0.host.begin(), s->v0.host.end(), 0.0);
    s->reset();
  }
  for (int64_t t = 1; t <= 7; ++t) {
    std::vector<double> ids, grads(at(n), 0.0), row_grads;
    for (int64_t r = 0; r < rows; ++r)
      if ((r * 7 + t) % 5 == 0) ids.push_back(static_cast<double>(r));
    const Tensor draw =
        random_tensor(DType::kF32, static_cast<int64_t>(ids.size()) * C, 80 + static_cast<uint64_t>(t));
    for (size_t i = 0; i < ids.size(); ++i)
      for (int64_t k = 0; k < C; ++k)
        grads[at(static_cast<int64_t>(ids[i]) * C + k)] = draw[static_cast<int64_t>(i) * C + k];
    const double rate = 0.01 * static_cast<double>(t);
    for (State* s : {&dense, &late}) {
      s->lr.host = {rate}, s->step.host = {static_cast<double>(t)};
      s->lr.upload(), s->step.upload();
    }
    history[t % capacity] = rate;
    history.upload();
    dense.g.host = grads;
    dense.g.upload();
    adam(c.stream, dense.flat(true, true), dense.scalars(), all, a, true);
    const Tensor id_list = values(DType::kI32, ids);
    const Ids list{id_list.data(), false, id_list.count(), rows, -1};
    DeviceBuffer sort(sort_ids_workspace(list));
    const SortedIds sorted = sort_ids(c.stream, list, sort.data(), bad.as<BadId>());
    adamw_catch_up(c.stream, state, &sorted, id_list.count(), history.f32(), capacity,
                   late.step.device.as<int64_t>(), a, bad.as<BadId>(), workspace.data());
    adamw_rows(c.stream, state, id_list.device.as<int32_t>(), draw.f32(), id_list.count(), late.scalars(), a);
    require(cudaDeviceSynchronize(), "rows");
  }
  late.step.host = {8};
  late.step.upload();
  adamw_catch_up(c.stream, state, nullptr, 0, history.f32(), capacity, late.step.device.as<int64_t>(), a,
                 bad.as<BadId>(), workspace.data());
  require(cudaDeviceSynchronize(), "rows");
  c.expect("adamw_rows and adamw_catch_up have the bits of adamw", dense.p.read() == late.p.read() &&
                                                                       dense.m.read() == late.m.read() &&
                                                                       dense.v.read() == late.v.read());
}

}  // namespace

void check_optimizers(Checks& c) {
  check_flat(c);
  check_lamb(c);
  check_adafactor(c);
  check_norm(c);
  check_rows_late(c);
}

}  // namespace kernel_check
