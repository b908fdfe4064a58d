#include "state/statistics.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/outcomes/outcome_arrays.hpp"
#include "bindings/rule_binding.hpp"
#include "bindings/unit_arrays.hpp"

namespace armlet {

Ridge parse_ridge(const std::string& kind, double value) {
    if (kind == "paper") return {Ridge::Kind::paper, value};
    if (kind == "1/n") return {Ridge::Kind::inverse_n, value};
    if (kind != "constant") fail(PyExc_ValueError, "ridge is '" + kind + "'; choose 'paper', '1/n' or 'constant'");
    if (!(value > 0.0 && value <= largest_value))
        fail(PyExc_ValueError, "the constant ridge is " + text(value) + "; it must be a positive number");
    return {Ridge::Kind::constant, value};
}

namespace {

void check_arm(const Statistics& s, std::size_t arm) {
    if (arm >= s.n_arms())
        fail(PyExc_IndexError,
             "arm is " + std::to_string(arm) + " but there are " + std::to_string(s.n_arms()) + " arms");
}

void check_same_units(const Statistics& s, const Statistics& other) {
    if (s.units().is_free() != other.units().is_free())
        fail(PyExc_ValueError, "the units of the one are free and those of the other as given; both must be the same");
    if (!(s.discount() == other.discount()) || s.has_weighted_widths() != other.has_weighted_widths())
        fail("MergeError",
             "rows fade otherwise in the one than in the other; both policies must have the same half-life");
}

Array<double> column(Statistics& s, std::size_t first) {
    std::vector<double> out(s.n_arms());
    for (std::size_t arm = 0; arm < s.n_arms(); ++arm) out[arm] = s.fade() * s.record(arm)[first];
    return to_numpy(std::move(out), {s.n_arms()});
}

Array<double> vectors(Statistics& s) {
    std::vector<double> out;
    for (std::size_t arm = 0; arm < s.n_arms(); ++arm) {
        const auto b = s.record(arm).subspan(3, s.view_size());
        for (const double one : b) out.push_back(s.fade() * one);
    }
    return to_numpy(std::move(out), {s.n_arms(), s.view_size()});
}

Array<double> matrices(Statistics& s) {
    const std::size_t d = s.view_size();
    std::vector<double> out(s.n_arms() * d * d);
    for (std::size_t arm = 0; arm < s.n_arms(); ++arm) {
        const double* packed = s.record(arm).data() + 3 + d;
        double* A = out.data() + arm * d * d;
        for (std::size_t k = 0; k < d; ++k)
            for (std::size_t i = k; i < d; ++i) A[k * d + i] = A[i * d + k] = s.fade() * *packed++;
    }
    return to_numpy(std::move(out), {s.n_arms(), d, d});
}

Array<double> records(Statistics& s) {
    const auto all = s.records();
    return to_numpy(std::vector<double>(all.begin(), all.end()), {s.n_arms(), s.record_size()});
}

Array<double> digits_lost(const Statistics& s) {
    const std::size_t columns = LostDigits::features + s.dim();
    const auto lost = s.lost_digits().digits();
    std::vector<double> out(lost.begin(), lost.end());
    out.resize(s.n_arms() * columns);
    return to_numpy(std::move(out), {s.n_arms(), columns});
}

void restore(Statistics& s, nb::handle values) {
    s.restore({doubles(values, "records", {s.n_arms(), s.record_size()}), s.n_arms() * s.record_size()});
}

nb::dict arrays(Statistics& s) {
    nb::dict out;
    out["records"] = records(s);
    write_outcomes(s, out);
    if (s.units().is_free()) out["units"] = units_array(s.units());
    if (s.under_way().is_open()) out["under_way"] = under_way_array(s);
    if (s.discount().is_on()) out["clock"] = clock_array(s);
    if (s.has_weighted_widths()) {
        const auto all = s.squares();
        out["squares"] =
            to_numpy(std::vector<double>(all.begin(), all.end()), {s.n_arms(), packed_size(s.view_size())});
    }
    return out;
}

std::span<const double> read_squares(const Statistics& s, nb::dict arrays) {
    if (!s.has_weighted_widths()) return {};
    const std::size_t n_arms = s.n_arms(), size = packed_size(s.view_size());
    const std::span out(doubles(arrays["squares"], "squares", {n_arms, size}), n_arms * size);
    for (const double value : out)
        if (!(std::fabs(value) <= largest_sum)) fail(PyExc_ValueError, "the squares are not those of any rows");
    return out;
}

void restore_arrays(Statistics& s, nb::dict arrays) {
    const std::size_t n_arms = s.n_arms(), size = s.record_size();
    const std::span records(doubles(arrays["records"], "records", {n_arms, size}), n_arms * size);
    check_records(records.data(), n_arms * size, size);
    std::span<const double> units;
    std::span<const std::int64_t> under_way;
    if (s.units().is_free()) units = read_units(s.units(), arrays["units"], records);
    if (s.under_way().is_open()) under_way = read_under_way(arrays["under_way"], n_arms);
    const OutcomeArrays outcomes = read_outcomes(s, arrays);
    const auto squares = read_squares(s, arrays);
    if (s.discount().is_on()) s.restore_clock(read_clock(arrays["clock"]));
    s.restore_outcome_records(outcomes.records);
    for (std::size_t arm = 0, n = packed_size(s.view_size()); arm < n_arms && !squares.empty(); ++arm)
        s.restore_squares(arm, squares.subspan(arm * n, n));
    s.restore(records);
    s.restore_units(units);
    s.restore_outcome_units(outcomes.units);
    if (s.under_way().is_open()) s.restore_under_way(under_way);
}

// theta of views of contexts, one arm after the other.
std::vector<double> solved_estimates(Statistics& s) {
    s.use_usual_weights();
    s.refresh();
    const Estimates e = s.estimates();
    std::vector<double> out(s.n_arms() * e.dim);
    for (std::size_t arm = 0; arm < s.n_arms(); ++arm)
        for (std::size_t j = 0; j < e.dim; ++j) out[arm * e.dim + j] = e.theta[j * e.width + arm];
    return out;
}

Array<double> standard_estimates(Statistics& s) { return to_numpy(solved_estimates(s), {s.n_arms(), s.view_size()}); }

Array<double> estimates(Statistics& s) {
    if (!s.units().is_free()) return standard_estimates(s);
    const std::vector<double> theta = solved_estimates(s);
    std::vector<double> out(s.n_arms() * s.dim());
    for (std::size_t arm = 0; arm < s.n_arms(); ++arm)
        s.units().to_user(theta.data() + arm * s.view_size(), 1, out.data() + arm * s.dim());
    return to_numpy(std::move(out), {s.n_arms(), s.dim()});
}

Array<double> intercepts(Statistics& s) {
    std::vector<double> out(s.n_arms());
    if (!s.units().is_free()) return to_numpy(std::move(out), {s.n_arms()});
    const std::vector<double> theta = solved_estimates(s);
    std::vector<double> slopes(s.dim());
    for (std::size_t arm = 0; arm < s.n_arms(); ++arm)
        out[arm] = s.units().to_user(theta.data() + arm * s.view_size(), 1, slopes.data());
    return to_numpy(std::move(out), {s.n_arms()});
}

// A context given in Python, as it is looked at.
class View {
  public:
    View(const Statistics& s, nb::handle x) : room_(s.units().is_free() ? s.view_size() : 0) {
        values = s.view(doubles(x, "x", {s.dim()}), room_.data());
    }
    const double* values;

  private:
    std::vector<double> room_;
};

Array<double> scores(Statistics& s, nb::handle x) {
    const View view(s, x);
    s.use_usual_weights();
    s.refresh();
    std::vector<double> out(s.width());
    s.estimates().scores(view.values, out.data());
    out.resize(s.n_arms());
    return to_numpy(std::move(out), {s.n_arms()});
}

void refresh_factors(Statistics& s) {
    if (s.ridge().kind != Ridge::Kind::constant)
        fail(PyExc_ValueError, "widths need a constant ridge; make the statistics with ridge='constant'");
    s.keep_factors();
    s.use_usual_weights();
    s.refresh();
    s.refresh_noise();
}

Array<double> widths(Statistics& s, nb::handle x) {
    const View view(s, x);
    refresh_factors(s);
    std::vector<double> out(s.n_arms());
    std::vector<std::uint32_t> all(s.n_arms());
    std::iota(all.begin(), all.end(), 0u);
    s.widths(all, view.values, out.data());
    return to_numpy(std::move(out), {s.n_arms()});
}

Array<double> width_bounds(Statistics& s, nb::handle x) {
    const View view(s, x);
    refresh_factors(s);
    std::vector<double> out(s.n_arms(), std::numeric_limits<double>::infinity());
    std::vector<std::uint32_t> all(s.n_arms());
    std::iota(all.begin(), all.end(), 0u);
    if (s.keeps_coarse()) s.width_bounds(all, view.values, out.data());
    return to_numpy(std::move(out), {s.n_arms()});
}

double noise(Statistics& s) {
    refresh_factors(s);
    return s.noise();
}

double typical_noise(Statistics& s) {
    refresh_factors(s);
    return s.typical_noise();
}

Array<double> log_determinants(Statistics& s) {
    refresh_factors(s);
    const auto all = s.log_determinants();
    return to_numpy(std::vector<double>(all.begin(), all.end()), {s.n_arms()});
}

Array<std::int64_t> versions(const Statistics& s) {
    const auto all = s.versions();
    return to_numpy<std::int64_t>(std::vector<std::int64_t>(all.begin(), all.end()), {s.n_arms()});
}

const double* row_outcomes(const Statistics& s, nb::handle outcomes, const char* name) {
    if (s.n_outcomes() == 0 && outcomes.is_none()) return nullptr;
    return doubles(outcomes, name, {s.n_outcomes()});
}

void add(Statistics& s, std::size_t arm, nb::handle x, double reward, double weight, nb::handle outcomes, Word t,
         std::int32_t tag) {
    check_arm(s, arm);
    s.add(arm, doubles(x, "x", {s.dim()}), reward, weight, row_outcomes(s, outcomes, "outcomes"), {t, tag});
}

void correct(Statistics& s, std::size_t arm, nb::handle x, double from, double to, double weight, nb::handle before,
             nb::handle after, Word t, std::int32_t tag) {
    check_arm(s, arm);
    const auto *old_outcomes = row_outcomes(s, before, "old_outcomes"),
               *new_outcomes = row_outcomes(s, after, "new_outcomes");
    s.correct(arm, doubles(x, "x", {s.dim()}), {from, to, old_outcomes, new_outcomes}, weight, {t, tag});
}

void as_of(Statistics& s, Word t, std::int32_t tag) {
    if (s.discount().is_on() && (!s.discount().is_by_time() || tag > 0)) s.look({t, tag});
}

}  // namespace

Discount parse_discount(nb::handle half_life) {
    if (half_life.is_none()) return {};
    const bool is_time = nb::hasattr(half_life, "total_seconds");
    const nb::object given = is_time ? half_life.attr("total_seconds")() : nb::borrow(half_life);
    double value = PyFloat_Check(given.ptr()) ? PyFloat_AS_DOUBLE(given.ptr()) : 0.0;
    if (is_time) value /= 60.0;
    if (!(value >= 1.0 && value <= largest_value))
        fail(PyExc_ValueError, "half_life is " + quoted(half_life) +
                                   "; give a float of at least 1 step, a timedelta of at least a minute, or None");
    return {is_time ? Discount::By::time : Discount::By::steps, value};
}

Array<std::int64_t> clock_array(const Statistics& s) {
    return to_numpy<std::int64_t>(std::vector<std::int64_t>{s.clock()}, {std::size_t{1}});
}

Discount::Tick read_clock(nb::handle clock) {
    const std::int64_t tick = *integers(clock, "clock", 1);
    if (tick < 0 || tick > std::int64_t{1} << 62)
        fail(PyExc_ValueError, "the clock stands at " + std::to_string(tick) + ", which is none");
    return tick;
}

Array<std::int64_t> under_way_array(const Statistics& s) {
    std::vector<std::int64_t> out(s.n_arms());
    for (std::size_t arm = 0; arm < out.size(); ++arm) out[arm] = s.under_way().count(arm);
    return to_numpy<std::int64_t>(std::move(out), {s.n_arms()});
}

std::span<const std::int64_t> read_under_way(nb::handle given, std::size_t n_arms) {
    const std::span counts(integers(given, "under_way", n_arms), n_arms);
    for (const auto count : counts)
        if (count > UnderWay::largest || count < -UnderWay::largest)
            fail(PyExc_ValueError, "under_way is " + std::to_string(count) + ", beyond what is counted: 2^53");
    return counts;
}

void check_records(const double* values, std::size_t n, std::size_t size) {
    for (std::size_t i = 0; i < n; ++i)
        if (!(std::fabs(values[i]) <= largest_sum) || (i % size == 0 && values[i] < 0.0))
            fail(PyExc_ValueError, "the sums are not those of any rows");
}

namespace {

void check_into(const Statistics& s, const Statistics& other, const std::vector<std::size_t>& into) {
    check_same_units(s, other);
    if (other.n_outcomes() != s.n_outcomes())
        fail(PyExc_ValueError, "the other statistics have " + std::to_string(other.n_outcomes()) +
                                   " outcomes and these " + std::to_string(s.n_outcomes()) + "; both must be the same");
    if (other.dim() != s.dim() || into.size() != other.n_arms())
        fail(PyExc_ValueError, "the other statistics have " + std::to_string(other.n_arms()) + " arms of dim " +
                                   std::to_string(other.dim()) + "; these take " + std::to_string(into.size()) +
                                   " arms of dim " + std::to_string(s.dim()));
    for (const auto arm : into) check_arm(s, arm);
}

}  // namespace

void subtract_statistics(Statistics& s, Statistics& earlier, const std::vector<std::size_t>& into) {
    check_into(s, earlier, into);
    s.advance(earlier.clock());
    s.look_at(s.clock()), earlier.look_at(s.clock());
    for (std::size_t arm = 0; arm < into.size(); ++arm)
        if (const double n = s.count(into[arm]), less = earlier.count(arm); n < less * (1.0 - 1e-12))
            fail("MergeError", "arm " + std::to_string(into[arm]) + " has n = " + text(n) + ", fewer than the " +
                                   text(less) +
                                   " of the earlier state; rows that were forgotten since, or an arm that "
                                   "was removed and added again, are no difference that can be added");
    for (std::size_t arm = 0; arm < into.size(); ++arm) s.subtract(into[arm], earlier, arm);
    s.finish();
}

void check_mergeable(Statistics& s, Statistics& other, const std::vector<std::size_t>& into) {
    check_into(s, other, into);
    for (std::size_t arm = 0; arm < into.size(); ++arm) {
        const std::vector<double> theirs = s.record_from(other, arm);
        for (std::size_t i = 0; i < s.record_size(); ++i)
            if (!(std::fabs(s.record(into[arm])[i] + theirs[i]) <= largest_sum))
                fail("MergeError", "the sums of the two are too large to be added: beyond " + text(largest_sum));
    }
}

void merge_statistics(Statistics& s, Statistics& other, const std::vector<std::size_t>& into) {
    check_mergeable(s, other, into);
    for (std::size_t arm = 0; arm < into.size(); ++arm) s.merge(into[arm], other, arm);
    s.finish();
}

namespace {

void add_arm(Statistics& s) {
    s.append_arm();
    s.finish();
}

void renew(Statistics& s) {
    s.renew();
    s.finish();
}

void remove_arm(Statistics& s, std::size_t arm) {
    check_arm(s, arm);
    s.erase_arm(arm);
    s.finish();
}

void count_under_way(Statistics& s) {
    if (!s.under_way().is_open()) s.count_under_way();
}

Array<bool> active(const Statistics& s) {
    std::vector<std::uint8_t> out(s.n_arms());
    for (std::size_t arm = 0; arm < s.n_arms(); ++arm) out[arm] = s.is_active(arm);
    return to_numpy<bool>(std::move(out), {s.n_arms()});
}

void set_active(Statistics& s, std::size_t arm, bool active) {
    check_arm(s, arm);
    s.set_active(arm, active);
}

void create(Statistics* self, std::size_t n_arms, std::size_t dim, const std::string& ridge, double value,
            const std::string& units, nb::handle origin, nb::handle half_life, bool weighted_widths) {
    if (n_arms == 0 || dim == 0) fail(PyExc_ValueError, "n_arms and dim must be at least 1");
    const Discount discount = parse_discount(half_life);
    new (self) Statistics(n_arms, parse_units(units, dim, origin), parse_ridge(ridge, value));
    if (discount.is_on())
        self->open_discount(discount, weighted_widths ? Statistics::Widths::weighted : Statistics::Widths::plain);
}

nb::object fades(const Statistics& s) {
    if (!s.discount().is_on()) return nb::none();
    return nb::str(s.discount().is_by_time() ? "time" : "steps");
}

}  // namespace

void bind_statistics(nb::module_& m) {
    auto statistics =
        nb::class_<Statistics>(m, "Statistics", nb::dynamic_attr(),
                               "n, A, b, sum_r and sum_rr of every arm, and the estimates solved from them.")
            .def("__init__", &create, nb::arg("n_arms"), nb::arg("dim"), nb::kw_only(), nb::arg("ridge") = "paper",
                 nb::arg("value") = 1.0, nb::arg("units") = "as given", nb::arg("origin") = nb::none(),
                 nb::arg("half_life") = nb::none(), nb::arg("weighted_widths") = false)
            .def_prop_ro("fades", &fades, nb::sig("def fades(self) -> typing.Literal['steps', 'time'] | None"),
                         "By what rows fade, if they do: the steps of their decisions, or the time that these tell in "
                         "their tag.")
            .def_prop_ro("clock", &Statistics::clock, "The tick of the latest decision that was learned, if rows fade.")
            .def("as_of", &as_of, nb::arg("t"), nb::arg("tag") = 0,
                 "If rows fade: all else is as of this step, or of this time in minutes; no earlier than the clock.")
            .def_prop_ro("n_arms", &Statistics::n_arms)
            .def_prop_ro("dim", &Statistics::dim, "The number of values in a context, d.")
            .def_prop_ro(
                "units", [](const Statistics& s) { return s.units().is_free() ? "free" : "as given"; },
                nb::sig("def units(self) -> typing.Literal['free', 'as given']"),
                "'as given', where y = x and all that follows is of x and r; or 'free', where sums are of y = (1, x - "
                "o) "
                "and r - l, and estimates of z = (1, (x - o - m) / s) and r - l - r0.")
            .def_prop_ro(
                "deviation", [](const Statistics& s) { return s.units().is_free() ? s.units().deviation() : 1.0; },
                "Of all rewards, when units were last looked at; 1 in units as given.")
            .def_prop_ro(
                "base", [](const Statistics& s) { return s.units().base(); },
                "What scores leave out, since all arms share it: l + r0 in free units, else 0.")
            .def_prop_ro("nbytes", &Statistics::bytes, "Bytes held: sums, estimates and marks of what is to be solved.")
            .def_prop_ro(
                "n", [](Statistics& s) { return column(s, 0); }, owned, "(K,): how many rows, by weight.")
            .def_prop_ro(
                "sum_r", [](Statistics& s) { return column(s, 1); }, owned, "(K,): sum of r, or of r - l.")
            .def_prop_ro(
                "sum_rr", [](Statistics& s) { return column(s, 2); }, owned, "(K,): sum of r^2, or of (r - l)^2.")
            .def_prop_ro("b", &vectors, owned, "(K, D): sum of r y.")
            .def_prop_ro("A", &matrices, owned, "(K, D, D): sum of y y'.")
            .def("records", &records,
                 "(K, 3 + D + D (D + 1) / 2): n, sum_r, sum_rr, b and the upper triangle of A by rows.")
            .def("restore", &restore, nb::arg("records"), "Takes the sums from what `records` gave.")
            .def("renew", &renew, "In free units: takes the means and deviations of all rows anew.")
            .def("estimates", &estimates, "(K, d): theta_hat, solved where it changed: slopes in the user's units.")
            .def("intercepts", &intercepts,
                 "(K,): what is expected at x = 0, in the user's units; 0 if units are as given.")
            .def(
                "standard", [](const Statistics& s, nb::handle X) { return standard(s.units(), X); }, nb::arg("X"),
                "(n, D): rows of z, or in units as given of X itself.")
            .def("standard_estimates", &standard_estimates, "(K, D): theta_hat of z.")
            .def("scores", &scores, nb::arg("x"), "(K,): z' theta_hat, the expected reward less `base`.")
            .def("widths", &widths, nb::arg("x"),
                 "(K,): sqrt(z' V^-1 z) with V = ridge I + A, for a constant ridge; keeps a factor of V for each arm.")
            .def("width_bounds", &width_bounds, nb::arg("x"),
                 "(K,): no less than the widths and little more, where factors are kept coarsely as well; else inf.")
            .def("noise", &noise,
                 "The deviation of rewards about the estimates, for a constant ridge: from the arms with more than d "
                 "rows, "
                 "else the root of the mean squared reward, or 1.")
            .def("typical_noise", &typical_noise, "The same, but so that one arm that is much noisier hardly counts.")
            .def("log_determinants", &log_determinants, "(K,): log det V.")
            .def_prop_ro("versions", &versions, owned,
                         "(K,): a stamp for each arm; no two states of its sums share one.")
            .def("add", &add, nb::arg("arm"), nb::arg("x"), nb::arg("reward"), nb::arg("weight") = 1.0,
                 nb::arg("outcomes") = nb::none(), nb::arg("t") = 0, nb::arg("tag") = 0,
                 "n += w, b += w r x, A += w x x'; a negative weight takes a row back. Of the decision of step t, if "
                 "rows fade.")
            .def("correct", &correct, nb::arg("arm"), nb::arg("x"), nb::arg("old"), nb::arg("new"),
                 nb::arg("weight") = 1.0, nb::arg("old_outcomes") = nb::none(), nb::arg("new_outcomes") = nb::none(),
                 nb::arg("t") = 0, nb::arg("tag") = 0, "The row stays, its reward changes.")
            .def("merge", &merge_statistics, nb::arg("other"), nb::arg("into"),
                 "Adds the other's arm i to this arm into[i].")
            .def("subtract", &subtract_statistics, nb::arg("earlier"), nb::arg("into"),
                 "Takes the earlier one's arm i away from this arm into[i].")
            .def("add_arm", &add_arm, "One more arm, of which nothing is known.")
            .def("remove_arm", &remove_arm, nb::arg("arm"))
            .def_prop_ro("n_active", &Statistics::n_active, "How many arms are not retired.")
            .def_prop_ro("active", &active, owned, "(K,): which arms are not retired.")
            .def("set_active", &set_active, nb::arg("arm"), nb::arg("active"),
                 "Says whether an arm may be played; a bandit tells its state by itself.")
            .def("count_under_way", &count_under_way,
                 "From now on decisions that wait for their reward are counted, and kept with the sums.")
            .def_prop_ro("under_way", &under_way_array, owned,
                         "(K,): how many decisions of each arm wait for their reward, 0 where they are not counted; "
                         "below 0 in what was learned since a base, if the base counts decisions that were learned "
                         "here.")
            .def_prop_ro(
                "digits_lost", &digits_lost, owned,
                "(K, 2 + d): how many of sixteen digits n, rewards and each feature have lost in an arm, since "
                "rows were taken back that were far larger than the others; 0 below ten. An arm that kept fewer "
                "than four was emptied. Not kept in files.")
            .def("arrays", &arrays, nb::sig("def arrays(self) -> dict[str, NDArray[numpy.generic]]"),
                 "All that must be kept, by name.")
            .def("restore_arrays", &restore_arrays, nb::arg("arrays"),
                 nb::sig("def restore_arrays(self, arrays: dict[str, NDArray[numpy.generic]]) -> None"),
                 "Takes back what `arrays` gave, if these are sums of rows.")
            .def("copy", [](const Statistics& s) { return Statistics(s); });
    // what depends on the order of rows, so that merging cannot just add it up
    statistics.attr("not_summed") = nb::make_tuple("units", "outcome_units", "clock");
    bind_outcomes(statistics);
    bind_units(m);
    bind_auto_tuned_statistics(m);
    bind_lazy_statistics(m);
}

}  // namespace armlet
