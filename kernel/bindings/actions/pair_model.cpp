#include "actions/pair_model.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"

namespace armlet {

namespace {

bool is_words(nb::handle array) { return is_plain(array, NPY_ULONG, 1) || is_plain(array, NPY_ULONGLONG, 1); }

std::size_t count_words(nb::handle array, const char* name) {
    if (!is_words(array)) fail(PyExc_TypeError, std::string(name) + " must be a plain uint64 array of one axis");
    return static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(array.ptr()), 0));
}

const Word* words(nb::handle array, const char* name, std::size_t length) {
    if (count_words(array, name) != length)
        fail(PyExc_ValueError, std::string(name) + " must be " + std::to_string(length) + " numbers");
    return static_cast<const Word*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
}

std::size_t extent(nb::handle array, const char* name, NPY_TYPES type, int ndim, int axis) {
    if (!is_plain(array, type, ndim))
        fail(PyExc_TypeError, std::string(name) + " must be a plain array of " + std::to_string(ndim) + " axes");
    return static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(array.ptr()), axis));
}

const double* small(nb::handle array, const char* name, std::initializer_list<std::size_t> shape) {
    const double* values = doubles(array, name, shape);
    std::size_t n = 1;
    for (const auto one : shape) n *= one;
    bool fits = true;
    for (std::size_t i = 0; i < n; ++i) fits &= std::fabs(values[i]) <= largest_value;
    if (!fits)
        fail("InvalidValueError", std::string(name) + " holds a number that is not finite or beyond 1e40; give others");
    return values;
}

void make_rows(ActionRows* self, nb::handle Z, nb::handle keys) {
    const std::size_t n = extent(Z, "Z", NPY_DOUBLE, 2, 0), dz = extent(Z, "Z", NPY_DOUBLE, 2, 1);
    const double* values = small(Z, "Z", {n, dz});
    const Word* given = words(keys, "keys", n);
    new (self) ActionRows({values, values + n * dz}, {given, given + n}, dz);
    if (self->is_unique()) return;
    self->~ActionRows();
    fail("InvalidValueError", "keys must differ from each other");
}

void make_model(PairModel* self, std::size_t dx, std::size_t dz, nb::handle products, bool intercepts,
                std::size_t kept) {
    const std::size_t n = extent(products, "products", NPY_LONG, 2, 0);
    if (extent(products, "products", NPY_LONG, 2, 1) != 2) fail(PyExc_ValueError, "products must be (m, 2)");
    const auto* pairs =
        static_cast<const std::int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(products.ptr())));
    std::vector<bool> seen(dx * dz);
    for (std::size_t k = 0; k < n; ++k) {
        const std::int64_t i = pairs[2 * k], j = pairs[2 * k + 1];
        if (i < 1 || j < 1 || static_cast<std::size_t>(i) > dx || static_cast<std::size_t>(j) > dz)
            fail("InvalidValueError", "products must be pairs of features from 1 to " + std::to_string(dx) +
                                          " and from 1 to " + std::to_string(dz));
        const std::size_t at = static_cast<std::size_t>(i - 1) * dz + static_cast<std::size_t>(j - 1);
        if (seen[at]) fail("InvalidValueError", "products must differ from each other");
        seen[at] = true;
    }
    if (kept < 1) fail("InvalidValueError", "kept=0 must be at least 1");
    new (self) PairModel(PairTerms(dx, dz, {pairs, 2 * n}), intercepts, kept);
}

const PairTerms& terms(const PairModel& model) { return model.sums().terms(); }

PairRow read_pair(const PairModel& model, Word key, nb::handle x, nb::handle z, double reward, double weight) {
    if (!(std::fabs(reward) <= largest_value))
        fail("InvalidValueError", "reward=" + text(reward) + " must be a number of at most 1e40 in size");
    if (!(weight > 0.0 && weight <= largest_value))
        fail("InvalidValueError", "weight=" + text(weight) + " must be positive and at most 1e40");
    return {key, small(x, "x", {terms(model).dx()}), small(z, "z", {terms(model).dz()}), reward, weight};
}

void check_held(const PairModel& model, const PairRow& row) {
    if (model.sums().rows() == 0) fail("InvalidValueError", "no row has been learned");
    if (!model.sums().holds(row.key, row.weight))
        fail("InvalidValueError",
             "the rows of item " + std::to_string(row.key) + " are no longer kept apart: more than kept=" +
                 std::to_string(model.sums().kept()) + " items came after some of them, or no such row was learned");
}

void check_alike(const PairModel& model, const PairModel& other) {
    if (!model.sums().is_like(other.sums()))
        fail("MergeError", "the models have different features, products or intercepts");
}

PairQuestion read_question(const PairModel& model, nb::handle x, const ActionRows& rows, nb::handle allowed) {
    if (rows.dz() != terms(model).dz())
        fail("InvalidValueError", "rows have " + std::to_string(rows.dz()) + " features; the model has " +
                                      std::to_string(terms(model).dz()));
    return {small(x, "x", {terms(model).dx()}), rows,
            allowed.is_none() ? nullptr : booleans(allowed, "allowed", rows.size())};
}

Array<std::int64_t> row_numbers(PairModel::Rows&& rows) {
    const std::size_t n = rows.size();
    return to_numpy<std::int64_t>(std::move(rows), {n});
}

std::vector<double> packed_factor(const PairModel::State& state) {
    const PairSolution& at = state.solution;
    const std::size_t d = at.theta.size();
    std::vector<double> out;
    for (std::size_t k = 0; k < d; ++k)
        out.insert(out.end(), at.L.data() + k * at.rows + k, at.L.data() + k * at.rows + d);
    out.insert(out.end(), at.inverse.begin(), at.inverse.end());
    out.push_back(at.sigma);
    return out;
}

Array<double> whole(std::vector<double>&& values) {
    const std::size_t n = values.size();
    return to_numpy(std::move(values), {n});
}

nb::dict arrays(PairModel& model) {
    model.refresh();
    PairModel::State state = model.state();
    const std::size_t d = terms(model).dx() + terms(model).dz(), n = state.sums.keys.size();
    std::vector<double> units = state.solution.units.middles, weights(state.ridges.begin(), state.ridges.end());
    units.insert(units.end(), state.solution.units.scales.begin(), state.solution.units.scales.end());
    weights.push_back(state.sums.kappa);
    nb::dict out;
    out["counts"] = to_numpy<std::int64_t>(std::vector<std::int64_t>{state.sums.rows, state.since, state.weighed},
                                           {std::size_t{3}});
    out["origin"] = whole(std::move(state.sums.origin));
    out["moments"] = whole(std::move(state.sums.moments));
    out["sums"] = whole(std::move(state.sums.sums));
    out["pulls"] = whole(std::move(state.sums.pulls));
    out["weights"] = whole(std::move(weights));
    out["units"] = to_numpy(std::move(units), {2, d});
    out["factor"] = whole(packed_factor(state));
    out["theta"] = whole(std::move(state.solution.theta));
    out["item_keys"] = to_numpy<std::uint64_t>(std::move(state.sums.keys), {n});
    out["item_rows"] = to_numpy<std::int64_t>(std::move(state.sums.item_rows), {n});
    out["items"] = to_numpy(std::move(state.sums.items), {n, 2 + d});
    const std::size_t n_folded = state.sums.folded.size();
    if (n_folded > 0) out["folded_keys"] = to_numpy<std::uint64_t>(std::move(state.sums.folded), {n_folded});
    return out;
}

std::vector<double> read(nb::dict arrays, const char* name, std::initializer_list<std::size_t> shape) {
    std::size_t n = 1;
    for (const auto one : shape) n *= one;
    const double* values = doubles(arrays[name], name, shape);
    for (std::size_t i = 0; i < n; ++i)
        if (!std::isfinite(values[i]))
            fail("InvalidValueError", std::string(name) + " holds a number that is not finite");
    return copy(values, n);
}

PairSolution read_solution(nb::dict arrays, std::size_t D, std::size_t d) {
    const std::size_t size = packed_size(D);
    const std::vector<double> units = read(arrays, "units", {2, d}), factor = read(arrays, "factor", {size + D + 1});
    const auto middle = units.begin() + static_cast<std::ptrdiff_t>(d);
    PairSolution out{.units = {{units.begin(), middle}, {middle, units.end()}},
                     .theta = read(arrays, "theta", {D}),
                     .L = std::vector<double>(D * D),
                     .inverse = {factor.end() - 1 - static_cast<std::ptrdiff_t>(D), factor.end() - 1},
                     .rows = D,
                     .sigma = factor.back(),
                     .version = 0};
    const double* from = factor.data();
    for (std::size_t k = 0; k < D; from += D - k, ++k) std::copy_n(from, D - k, out.L.data() + k * D + k);
    return out;
}

std::vector<Word> read_keys(nb::dict arrays, const char* name) {
    if (!arrays.contains(name)) return {};
    const std::size_t n = count_words(arrays[name], name);
    const Word* keys = words(arrays[name], name, n);
    std::vector<Word> sorted(keys, keys + n);
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        fail("InvalidValueError", std::string(name) + " must differ from each other");
    return {keys, keys + n};
}

void restore_arrays(PairModel& model, nb::dict arrays) {
    const std::size_t D = terms(model).size(), d = terms(model).dx() + terms(model).dz(), size = packed_size(D);
    const std::vector<Word> keys = read_keys(arrays, "item_keys");
    const std::size_t n = keys.size();
    const std::int64_t *counts = integers(arrays["counts"], "counts", 3),
                       *item_rows = integers(arrays["item_rows"], "item_rows", n);
    if (counts[0] < 0 || counts[1] < 0 || counts[2] < 0) fail("InvalidValueError", "counts must not be negative");
    const std::vector<double> weights = read(arrays, "weights", {n_ridge_groups + 1});
    for (const double one : weights)
        if (!(one > 0.0)) fail("InvalidValueError", "weights must be positive");
    const PairModel::State state{.sums = {.rows = counts[0],
                                          .origin = read(arrays, "origin", {1 + d}),
                                          .moments = read(arrays, "moments", {1 + 2 * (1 + d)}),
                                          .sums = read(arrays, "sums", {size + D + 1}),
                                          .pulls = read(arrays, "pulls", {size + D + 1}),
                                          .keys = keys,
                                          .item_rows = {item_rows, item_rows + n},
                                          .items = read(arrays, "items", {n, 2 + d}),
                                          .folded = read_keys(arrays, "folded_keys"),
                                          .kappa = weights.back()},
                                 .since = counts[1],
                                 .weighed = counts[2],
                                 .ridges = {weights[0], weights[1], weights[2]},
                                 .solution = read_solution(arrays, D, d)};
    model.restore(state);
}

void bind_learning(nb::class_<PairModel>& model) {
    model
        .def(
            "add",
            [](PairModel& self, Word key, nb::handle x, nb::handle z, double reward, double weight) {
                self.add(read_pair(self, key, x, z, reward, weight));
            },
            nb::arg("key"), nb::arg("x"), nb::arg("z"), nb::arg("reward"), nb::arg("weight"), "Learn one row.")
        .def(
            "remove",
            [](PairModel& self, Word key, nb::handle x, nb::handle z, double reward, double weight) {
                const PairRow row = read_pair(self, key, x, z, reward, weight);
                check_held(self, row);
                self.remove(row);
            },
            nb::arg("key"), nb::arg("x"), nb::arg("z"), nb::arg("reward"), nb::arg("weight"),
            "Take back a row that was learned, as if it had never been.")
        .def(
            "correct",
            [](PairModel& self, Word key, nb::handle x, nb::handle z, double old_reward, double new_reward,
               double weight) {
                const PairRow row = read_pair(self, key, x, z, old_reward, weight);
                const PairRow next = read_pair(self, key, x, z, new_reward, weight);
                check_held(self, row);
                self.correct(row, next.reward);
            },
            nb::arg("key"), nb::arg("x"), nb::arg("z"), nb::arg("old"), nb::arg("new"), nb::arg("weight"),
            "Exchange the reward of a row that was learned.")
        .def(
            "merge",
            [](PairModel& self, const PairModel& other) {
                check_alike(self, other);
                self.merge(PairModel(other));
            },
            nb::arg("other"), "Add the rows of another model; its items count as learned later than the own ones.")
        .def(
            "subtract",
            [](PairModel& self, const PairModel& base) {
                check_alike(self, base);
                if (!self.sums().has_origin_of(base.sums()))
                    fail("MergeError", "the model does not come of that base: origins of features differ");
                self.subtract(PairModel(base));
            },
            nb::arg("base"), "Leave what was learned since `base`, an earlier copy.")
        .def("solve", &PairModel::renew,
             "Weigh the evidence again and solve: everything is a function of the sums then.")
        .def("copy", [](const PairModel& self) { return PairModel(self); })
        .def("arrays", &arrays, "The whole state by name.")
        .def("restore_arrays", &restore_arrays, nb::arg("arrays"), "Take the state that `arrays` returned.");
}

void bind_asking(nb::class_<PairModel>& model) {
    model
        .def(
            "estimates",
            [](PairModel& self, nb::handle x, const ActionRows& rows) {
                return whole(self.estimates(read_question(self, x, rows, nb::none())));
            },
            nb::arg("x"), nb::arg("rows"), "(n,): the expected reward of every row.")
        .def(
            "widths",
            [](PairModel& self, nb::handle x, const ActionRows& rows, nb::handle allowed) {
                return whole(self.widths(read_question(self, x, rows, allowed)));
            },
            nb::arg("x"), nb::arg("rows"), nb::arg("allowed").none() = nb::none(),
            "(n,): the posterior deviation of every row's expected reward, in units of sigma.")
        .def(
            "greedy",
            [](PairModel& self, nb::handle x, const ActionRows& rows, nb::handle allowed) {
                return row_numbers(self.greedy(read_question(self, x, rows, allowed)));
            },
            nb::arg("x"), nb::arg("rows"), nb::arg("allowed").none(), "The rows that share the highest estimate.")
        .def(
            "optimistic",
            [](PairModel& self, nb::handle x, const ActionRows& rows, Word t, nb::handle allowed, double scale) {
                return row_numbers(self.optimistic(read_question(self, x, rows, allowed), t, scale));
            },
            nb::arg("x"), nb::arg("rows"), nb::arg("t"), nb::arg("allowed").none(), nb::arg("scale") = 0.85,
            "The rows that share the highest estimate plus scale sigma w sqrt(2 log(1 + t w^2 / D)).")
        .def(
            "draws",
            [](PairModel& self, nb::handle x, const ActionRows& rows, Word t, nb::handle seed, std::size_t n, double v,
               nb::handle allowed) {
                nb::list out;
                for (auto& winners : self.draws(read_question(self, x, rows, allowed), toss(parse_seed(seed), t), n, v))
                    out.append(row_numbers(std::move(winners)));
                return out;
            },
            nb::arg("x"), nb::arg("rows"), nb::arg("t"), nb::arg("seed"), nb::arg("n"), nb::arg("v"),
            nb::arg("allowed").none(),
            "For each of n draws from the posterior, v times as wide, the rows that share the highest value.");
}

Array<double> digits_lost(const PairModel& self) {
    std::vector<double> out = self.sums().digits_lost();
    const std::size_t columns = 1 + self.sums().origin().size();
    out.resize(columns);
    return to_numpy(std::move(out), {columns});
}

}  // namespace

void bind_actions(nb::module_& m) {
    nb::class_<ActionRows>(m, "ActionRows", "Actions that can be played: features (n, dz) and keys (n,).")
        .def("__init__", &make_rows, nb::arg("Z"), nb::arg("keys"))
        .def("__len__", &ActionRows::size)
        .def_prop_ro(
            "Z",
            [](const ActionRows& self) {
                return to_numpy(std::vector<double>(self.Z().begin(), self.Z().end()), {self.size(), self.dz()});
            },
            owned, "(n, dz): a copy of the features.")
        .def_prop_ro(
            "keys",
            [](const ActionRows& self) {
                return to_numpy<std::uint64_t>(std::vector<Word>(self.keys().begin(), self.keys().end()),
                                               {self.size()});
            },
            owned, "(n,): a copy of the keys.")
        .def_prop_ro("nbytes", &ActionRows::bytes);
    nb::class_<PairModel> model(m, "PairModel",
                                "One ridge regression over pairs of a context and an action, items with intercepts.");
    model
        .def("__init__", &make_model, nb::arg("dx"), nb::arg("dz"), nb::arg("products"), nb::kw_only(),
             nb::arg("intercepts"), nb::arg("kept") = 10'000)
        .def_prop_ro(
            "n", [](const PairModel& self) { return self.sums().n(); }, "Rows learned, by weight.")
        .def_prop_ro(
            "n_rows", [](const PairModel& self) { return self.sums().rows(); }, "Rows learned.")
        .def_prop_ro(
            "n_terms", [](const PairModel& self) { return terms(self).size(); }, "The number of terms, D.")
        .def_prop_ro(
            "n_items", [](const PairModel& self) { return self.sums().items().size(); }, "Items with an intercept.")
        .def_prop_ro(
            "sigma", [](PairModel& self) { return self.refresh(), self.sigma(); }, "The deviation of the noise.")
        .def_prop_ro(
            "ridges",
            [](PairModel& self) {
                self.refresh();
                return to_numpy(std::vector<double>(self.ridges().begin(), self.ridges().end()), {n_ridge_groups});
            },
            owned, "(3,): the ridges of x, z and their products, in standard units.")
        .def_prop_ro(
            "kappa", [](PairModel& self) { return self.refresh(), self.sums().kappa(); },
            "How many rows the prior of an intercept is worth.")
        .def_prop_ro(
            "digits_lost", &digits_lost, owned,
            "(2 + dx + dz,): how many of sixteen digits n, rewards and each feature have lost, since rows were "
            "taken back that were far larger than the others; 0 below ten. Sums that kept fewer than four were "
            "dropped. Not kept in files.")
        .def_prop_ro(
            "losses", [](const PairModel& self) { return self.sums().losses(); }, "How often digits were lost.")
        .def_prop_ro("last_exact_widths", &PairModel::last_exact_widths,
                     "How many widths the last optimistic question computed exactly.");
    bind_learning(model);
    bind_asking(model);
}

}  // namespace armlet
