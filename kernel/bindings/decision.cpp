#include "decision.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace armlet {

std::string Decision::id() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(mark));
    return std::to_string(t) + "-" + digits;
}

namespace {

bool parse(const char* begin, const char* end, int base, Word& out) {
    const auto result = std::from_chars(begin, end, out, base);
    return result.ec == std::errc() && result.ptr == end;
}

void parse_id(const std::string& id, Decision& d) {
    const auto dash = id.find('-');
    const char *begin = id.data(), *end = begin + id.size();
    if (dash == std::string::npos || !parse(begin, begin + dash, 10, d.t) || !parse(begin + dash + 1, end, 16, d.mark) ||
        d.id() != id || d.t == 0)
        fail(PyExc_ValueError, "id is '" + id + "', which no decision has; it looks like '12-00ff00ff00ff00ff'");
}

Array<double> context(const Decision& d) {
    return to_numpy(std::vector<double>(d.x.get(), d.x.get() + d.dim), {d.dim});
}

nb::object reward(const Decision& d) { return d.learned ? nb::object(nb::float_(d.reward)) : nb::none(); }

Decision restore(const std::string& id, nb::object arm, double propensity, bool explored, nb::handle x,
                 nb::object reward, double weight) {
    Decision d;
    parse_id(id, d);
    if (!(propensity > 0.0 && propensity <= 1.0))
        fail(PyExc_ValueError, "propensity is " + text(propensity) + "; it must be above 0 and at most 1");
    d.arm = arm, d.propensity = propensity, d.explored = explored, d.weight = weight;
    const std::size_t rows = nb::len(x);
    d.dim = static_cast<std::uint32_t>(rows);
    d.x = std::make_unique<double[]>(rows);
    if (!read_row(x, rows, d.x.get()))
        fail(PyExc_ValueError, "x must be a float64 row or a list of finite numbers; got " + quoted(x));
    d.learned = !reward.is_none();
    if (d.learned) d.reward = nb::cast<double>(reward);
    return d;
}

nb::tuple reduce(nb::handle self) {
    const auto& d = nb::cast<const Decision&>(self);
    nb::object restore = nb::module_::import_("armlet.core.kernel").attr("restore_decision");  // can be found by name
    return nb::make_tuple(restore, nb::make_tuple(d.id(), d.arm, d.propensity, d.explored,
                                                                       context(d), reward(d), d.weight));
}

std::string repr(const Decision& d) {
    return "Decision(id='" + d.id() + "', arm=" + quoted(d.arm) + ", propensity=" + text(d.propensity) +
           ", explored=" + (d.explored ? "True" : "False") + ")";
}

}  // namespace

Decisions::Decisions(Word before, Seed seed, nb::list labels, Word table, std::size_t dim, std::vector<double>&& contexts)
    : before(before), X(std::move(contexts)), seed_(seed), labels_(labels), table_(table), dim_(dim) {
    const std::size_t rows = X.size() / dim;
    index.resize(rows), propensities.resize(rows), explored.resize(rows);
}

void Decisions::note(std::size_t row, const Choice& choice) {
    index[row] = choice.arm, propensities[row] = choice.propensity, explored[row] = choice.explored;
}

Decision Decisions::make(std::size_t row) const {
    Decision d;
    d.t = before + row + 1;
    d.mark = toss(seed_, d.t).mark;
    d.index = static_cast<std::uint32_t>(index[row]);
    d.arm = labels_[d.index];
    d.table = table_, d.propensity = propensities[row], d.explored = explored[row];
    d.dim = static_cast<std::uint32_t>(dim_);
    d.x = std::make_unique_for_overwrite<double[]>(dim_);
    std::copy_n(X.data() + row * dim_, dim_, d.x.get());
    return d;
}

nb::object Decisions::item(std::ptrdiff_t row) {
    const auto rows = static_cast<std::ptrdiff_t>(size());
    if (row < -rows || row >= rows)
        fail(PyExc_IndexError, "row " + std::to_string(row) + " of " + std::to_string(rows) + " decisions");
    if (nb::len(made_) == 0)
        for (std::size_t i = 0; i < size(); ++i) made_.append(nb::cast(make(i)));
    return made_[static_cast<std::size_t>(row < 0 ? row + rows : row)];
}

nb::list Decisions::arms() const {
    nb::list out;
    for (const auto arm : index) out.append(labels_[static_cast<std::size_t>(arm)]);
    return out;
}

namespace {

void bind_decisions(nb::module_& m) {
    using Self = const Decisions&;
    nb::class_<Decisions>(m, "Decisions", nb::is_final(), "Many decisions in columns; each item is a Decision.")
        .def("__len__", &Decisions::size)
        .def("__getitem__", &Decisions::item, nb::arg("row"), nb::sig("def __getitem__(self, row: int, /) -> Decision"))
        .def_prop_ro("arms", &Decisions::arms, nb::sig("def arms(self, /) -> list[str | int]"), "The labels to play.")
        .def_prop_ro("t", [](Self s) {
            std::vector<std::int64_t> steps(s.size());
            for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<std::int64_t>(s.before + i + 1);
            return to_numpy<std::int64_t>(std::move(steps), {s.size()});
        }, owned, "(n,): the steps.")
        .def_prop_ro("indices", [](Self s) { return to_numpy<std::int64_t>(std::vector(s.index), {s.size()}); }, owned,
                     "(n,): the arms by index.")
        .def_prop_ro("propensities", [](Self s) { return to_numpy(std::vector(s.propensities), {s.size()}); }, owned,
                     "(n,): the probability with which each arm was to be played.")
        .def_prop_ro("explored", [](Self s) { return to_numpy<bool>(std::vector(s.explored), {s.size()}); }, owned,
                     "(n,): which steps explored.")
        .def("__repr__", [](Self s) { return "<" + std::to_string(s.size()) + " decisions>"; });
}

}  // namespace

void bind_decision(nb::module_& m) {
    nb::class_<Decision>(m, "Decision", nb::is_final(),
                         "What `decide` answers: the arm to play, and what `learn` needs when the reward comes.")
        .def_prop_ro("id", &Decision::id, "A name for the decision: its step, and 64 bits that tell bandits apart.")
        .def_ro("t", &Decision::t, "The step, counted from 1.")
        .def_ro("arm", &Decision::arm, nb::sig("def arm(self, /) -> str | int"), "The label of the arm to play.")
        .def_ro("propensity", &Decision::propensity, "The probability with which this arm was to be played.")
        .def_ro("explored", &Decision::explored, "Whether the step explored: the turn or the coins chose, not the estimates.")
        .def_ro("learned", &Decision::learned, "Whether a reward was learned from it.")
        .def_prop_ro("reward", &reward, nb::sig("def reward(self, /) -> float | None"), "The reward learned, if any.")
        .def_ro("weight", &Decision::weight, "The weight with which it was learned.")
        .def_prop_ro("x", &context, owned, "A copy of the context, as the bandit saw it.")
        .def_static("restore", &restore, nb::arg("id"), nb::arg("arm"), nb::arg("propensity"),
                    nb::arg("explored"), nb::arg("x"), nb::arg("reward").none() = nb::none(), nb::arg("weight") = 1.0,
                    nb::sig("def restore(id: str, arm: str | int, propensity: float, explored: bool, x: "
                            "NDArray[numpy.float64] | list[float], reward: float | None = None, weight: float = 1.0) -> "
                            "Decision"),
                    "A decision from a log or another process, pending unless a reward is given.")
        .def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> tuple[object, ...]"))
        .def("__repr__", &repr);
    bind_decisions(m);
}

}  // namespace armlet
