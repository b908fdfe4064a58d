#include "state/auto_tuned_statistics.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/rule_binding.hpp"
#include "bindings/unit_arrays.hpp"

namespace armlet {

namespace {

void create(AutoTunedStatistics* self, std::size_t n_arms, std::size_t dim, const std::string& ridge, double value,
            const std::string& units, nb::handle origin) {
    if (n_arms == 0 || dim == 0) fail(PyExc_ValueError, "n_arms and dim must be at least 1");
    new (self) AutoTunedStatistics(n_arms, parse_units(units, dim, origin), parse_ridge(ridge, value));
}

Array<double> turnover(const AutoTunedStatistics& tuned) {
    return to_numpy(std::vector<double>{tuned.tuner.came(), tuned.tuner.left()}, {std::size_t{2}});
}

nb::dict arrays(AutoTunedStatistics& tuned) {
    const auto records = tuned.records();
    std::vector<double> sample = tuned.tuner.sample();
    const std::size_t dim = tuned.dim(), rows = sample.size() / dim;
    nb::dict out;
    out["records"] =
        to_numpy(std::vector<double>(records.begin(), records.end()), {tuned.n_arms(), tuned.record_size()});
    out["sample"] = to_numpy(std::move(sample), {rows, dim});
    if (tuned.units().is_free()) {
        const auto shares = tuned.tuner.shares();
        out["units"] = units_array(tuned.units());
        out["shares"] = to_numpy(std::vector<double>(shares.begin(), shares.end()), {tuned.n_arms()});
        out["turnover"] = turnover(tuned);
        out["under_way"] = under_way_array(tuned);
    }
    out["tuning"] = to_numpy(std::vector<double>{tuned.tuner.raised(), tuned.tuner.next()}, {std::size_t{2}});
    return out;
}

void check_size(std::span<const double> values, double most) {
    for (const double value : values)
        if (!(std::fabs(value) <= most))
            fail(PyExc_ValueError, "the sample or p of the state is beyond what rows lead to");
}

std::span<const double> read_shares(nb::handle given, std::size_t n_arms) {
    const std::span shares(doubles(given, "shares", {n_arms}), n_arms);
    for (const double share : shares)
        if (!(share > 0.0 && share <= largest_sum)) fail(PyExc_ValueError, "the shares of p are not all above 0");
    return shares;
}

std::span<const double> read_turnover(nb::handle given) {
    const std::span counts(doubles(given, "turnover", {2}), 2);
    for (const double count : counts)
        if (!(count >= 0.0 && count <= largest_sum)) fail(PyExc_ValueError, "turnover must hold two counts of arms");
    return counts;
}

void restore_arrays(AutoTunedStatistics& tuned, nb::dict arrays) {
    const std::size_t n_arms = tuned.n_arms(), size = tuned.record_size(), dim = tuned.dim();
    const std::size_t rows = count_rows(arrays["sample"], "sample", dim);
    const std::span records(doubles(arrays["records"], "records", {n_arms, size}), n_arms * size);
    const std::span sample(doubles(arrays["sample"], "sample", {rows, dim}), rows * dim);
    const std::span tuning(doubles(arrays["tuning"], "tuning", {2}), 2);
    check_records(records.data(), n_arms * size, size);
    check_size(sample, largest_value), check_size(tuning, largest_sum);
    if (rows > Tuner::room || tuning[0] < 0.0 || tuning[1] < 0.0)
        fail(PyExc_ValueError, "the sample is too large, or p or the next look is negative");
    std::span<const double> units, shares, turns;
    std::span<const std::int64_t> under_way;
    if (tuned.units().is_free()) {
        turns = read_turnover(arrays["turnover"]);
        under_way = read_under_way(arrays["under_way"], n_arms);
        units = read_units(tuned.units(), arrays["units"], records);
        shares = read_shares(arrays["shares"], n_arms);
    }
    tuned.restore(records);
    tuned.restore_units(units);
    tuned.tuner.restore(tuning[0], tuning[1], sample);
    tuned.tuner.share(shares);
    if (!tuned.units().is_free()) return;
    tuned.tuner.turn_over(turns[0], turns[1]);
    tuned.restore_under_way(under_way);
}

Statistics& read_sums(nb::handle given, const char* name) {
    if (!nb::isinstance<Statistics>(given))
        fail(PyExc_TypeError, std::string(name) + " must be Statistics; got a " + name_of_type(given));
    return nb::cast<Statistics&>(given);
}

// Of sums without a p of their own nothing but the rows is known.
void merge(AutoTunedStatistics& tuned, nb::handle other, const std::vector<std::size_t>& into) {
    const double rows = rows_of(tuned);
    merge_statistics(tuned, read_sums(other, "other"), into);
    tuned.tuner.look_soon();
    if (!nb::isinstance<AutoTunedStatistics>(other)) return;
    const auto& from = nb::cast<const AutoTunedStatistics&>(other);
    tuned.tuner.merge(from.tuner);
    tuned.tuner.merge_shares(rows, from.tuner, rows_of(from), into);
}

void subtract(AutoTunedStatistics& tuned, nb::handle earlier, const std::vector<std::size_t>& into) {
    subtract_statistics(tuned, read_sums(earlier, "earlier"), into);
    if (nb::isinstance<AutoTunedStatistics>(earlier))
        tuned.tuner.subtract(nb::cast<const AutoTunedStatistics&>(earlier).tuner);
}

void add_arm(AutoTunedStatistics& tuned) {
    const double came = tuned.is_empty() ? 0.0 : 1.0;
    tuned.append_arm();
    tuned.tuner.append_arm();
    tuned.tuner.turn_over(tuned.tuner.came() + came, tuned.tuner.left());
    tuned.tuner.look_soon();
}

void remove_arm(AutoTunedStatistics& tuned, std::size_t arm) {
    if (arm >= tuned.n_arms())
        fail(PyExc_IndexError,
             "arm is " + std::to_string(arm) + " but there are " + std::to_string(tuned.n_arms()) + " arms");
    tuned.erase_arm(arm);
    tuned.tuner.erase_arm(arm);
    tuned.tuner.turn_over(tuned.tuner.came(), tuned.tuner.left() + 1.0);
    tuned.tuner.look_soon();
}

template <typename R>
bool learned(AutoTunedStatistics& tuned, const R& rule, nb::handle x, double weight, Word t) {
    return rule.look_if_due(tuned, doubles(x, "x", {tuned.dim()}), weight, t);
}

template <typename R>
double p_of(const AutoTunedStatistics& tuned, const R& rule) {
    return rule.p(tuned);
}

nb::tuple prospect(AutoTunedStatistics& tuned, const AutoSchedule& rule, double t) {
    Prospect seen = look(rule, tuned, tuned.tuner.sample(), t);
    const std::size_t n = seen.losses.size();
    return nb::make_tuple(seen.noise, seen.gap, to_numpy(std::move(seen.losses), {n}), seen.p);
}

nb::tuple outlook(AutoTunedStatistics& tuned, const AutoEvidence& rule, double t) {
    if (!tuned.units().is_free()) fail(PyExc_ValueError, "the sums are in units as given; the rule looks at free ones");
    Outlook seen = look(rule.how, tuned, t);
    const std::size_t n = seen.losses.size(), arms = seen.shares.size();
    return nb::make_tuple(seen.noise, seen.gap, to_numpy(std::move(seen.losses), {n}), seen.p,
                          to_numpy(std::move(seen.shares), {arms}));
}

Array<double> shares(const AutoTunedStatistics& tuned) {
    const auto all = tuned.tuner.shares();
    return to_numpy(std::vector<double>(all.begin(), all.end()), {all.size()});
}

Array<double> sample(const AutoTunedStatistics& tuned) {
    std::vector<double> out = tuned.tuner.sample();
    const std::size_t rows = out.size() / tuned.dim();
    return to_numpy(std::move(out), {rows, tuned.dim()});
}

}  // namespace

void bind_auto_tuned_statistics(nb::module_& m) {
    auto tuned =
        nb::class_<AutoTunedStatistics, Statistics>(m, "AutoTunedStatistics", nb::dynamic_attr(),
                                                    "Sums of explored rows, and the p that follows from them.")
            .def("__init__", &create, nb::arg("n_arms"), nb::arg("dim"), nb::kw_only(), nb::arg("ridge") = "paper",
                 nb::arg("value") = 1.0, nb::arg("units") = "as given", nb::arg("origin") = nb::none())
            .def_prop_ro(
                "nbytes", [](const AutoTunedStatistics& tuned) { return tuned.bytes() + tuned.tuner.bytes(); },
                "Bytes held.")
            .def_prop_ro("sample", &sample, owned,
                         "(m, d): the latest explored contexts, at most 64, the oldest first.")
            .def_prop_ro(
                "next_look", [](const AutoTunedStatistics& tuned) { return tuned.tuner.next(); },
                "Rows at which p is looked at again.")
            .def_prop_ro("shares", &shares, owned,
                         "(K,): of p, whatever they add up to; empty if all arms share alike.")
            .def_prop_ro("turnover", &turnover, owned,
                         "(2,): arms that came after the first row, and arms that were removed.")
            .def("p", &p_of<AutoSchedule>, nb::arg("rule"), "The p in force.")
            .def("p", &p_of<AutoEvidence>, nb::arg("rule"))
            .def("look", &prospect, nb::arg("rule"), nb::arg("t"),
                 nb::sig("def look(self, rule: AutoSchedule, t: float) -> tuple[float, float, NDArray[numpy.float64], "
                         "float]"),
                 "Noise, gap, losses with 1, 1.5, 1.5^2, ... times the rows, and the p that they ask for. A question.")
            .def("look", &outlook, nb::arg("rule"), nb::arg("t"),
                 nb::sig("def look(self, rule: AutoEvidence, t: float) -> tuple[float, float, NDArray[numpy.float64], "
                         "float, NDArray[numpy.float64]]"),
                 "The same, and each arm's share of p.")
            .def("learned", &learned<AutoSchedule>, nb::arg("rule"), nb::arg("x"), nb::arg("weight"), nb::arg("t"),
                 "An explored row was added to the sums: keeps its context and looks, if it is time. Whether p, or a "
                 "share of it, may have changed.")
            .def("learned", &learned<AutoEvidence>, nb::arg("rule"), nb::arg("x"), nb::arg("weight"), nb::arg("t"))
            .def("merge", &merge, nb::arg("other"), nb::arg("into"),
                 nb::sig("def merge(self, other: Statistics, into: collections.abc.Sequence[int]) -> None"),
                 "Adds the other's arm i to this arm into[i].")
            .def("subtract", &subtract, nb::arg("earlier"), nb::arg("into"),
                 nb::sig("def subtract(self, earlier: Statistics, into: collections.abc.Sequence[int]) -> None"),
                 "Takes the earlier one's arm i away from this arm into[i].")
            .def("add_arm", &add_arm, "One more arm, of which nothing is known.")
            .def("remove_arm", &remove_arm, nb::arg("arm"))
            .def("arrays", &arrays, nb::sig("def arrays(self) -> dict[str, NDArray[numpy.generic]]"),
                 "All that must be kept, by name.")
            .def("restore_arrays", &restore_arrays, nb::arg("arrays"),
                 nb::sig("def restore_arrays(self, arrays: dict[str, NDArray[numpy.generic]]) -> None"),
                 "Takes back what `arrays` gave, if these are sums of rows.")
            .def("copy", [](const AutoTunedStatistics& state) { return AutoTunedStatistics(state); });
    // what depends on the order of rows, so that merging cannot just add it up
    tuned.attr("not_summed") = nb::make_tuple("sample", "shares", "tuning", "turnover", "units");
}

}  // namespace armlet
