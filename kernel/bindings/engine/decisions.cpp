#include "bindings/engine/decisions.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "bindings/handed_over.hpp"

namespace armlet {

Decisions::Decisions(Word before, Seed seed, nb::list labels, Word table, std::size_t dim, Word features,
                     std::vector<double>&& contexts, nb::object eligible, NamedNumbers weights)
    : before(before),
      X(std::move(contexts)),
      choices(X.size() / dim),
      seed_(seed),
      labels_(labels),
      table_(table),
      dim_(dim),
      features_(features),
      eligible_(std::move(eligible)),
      weights_(std::move(weights)) {}

nb::object Decisions::make(std::size_t row) const {
    const Word t = before + row + 1;
    nb::object made = new_decision(dim_);
    Decision& d = decision_of(made);
    stamp(d, t, toss(seed_, t).mark, seed_, features_);
    settle(d, choices[row], labels_[choices[row].arm], table_, eligible_);
    if (!units_.empty() && units_[row].is_valid()) name_unit(d, units_[row], epochs_[row]);
    if (weights_.is_any()) d.extra().weights = weights_;
    std::copy_n(X.data() + row * dim_, dim_, d.x);
    return made;
}

void Decisions::note_unit(std::size_t row, nb::object unit, Word epoch) {
    if (units_.empty()) units_.resize(size()), epochs_.resize(size());
    units_[row] = std::move(unit), epochs_[row] = epoch;
}

nb::object Decisions::units() const {
    if (units_.empty()) return nb::none();
    nb::list out;
    for (const auto& unit : units_) out.append(unit.is_valid() ? unit : nb::none());
    return out;
}

nb::object Decisions::epochs() const {
    if (units_.empty()) return nb::none();
    nb::list out;
    for (std::size_t i = 0; i < size(); ++i)
        out.append(units_[i].is_valid() ? nb::object(nb::int_(epochs_[i])) : nb::none());
    return out;
}

nb::object Decisions::item(std::ptrdiff_t row) {
    const auto rows = static_cast<std::ptrdiff_t>(size());
    if (row < -rows || row >= rows)
        fail(PyExc_IndexError, "row " + std::to_string(row) + " of " + std::to_string(rows) + " decisions");
    return items()[static_cast<std::size_t>(row < 0 ? row + rows : row)];
}

const nb::list& Decisions::items() {
    if (nb::len(made_) == 0)
        for (std::size_t i = 0; i < size(); ++i) made_.append(make(i));
    return made_;
}

nb::list Decisions::arms() const {
    nb::list out;
    for (const auto& choice : choices) out.append(labels_[choice.arm]);
    return out;
}

nb::list Decisions::ids() const {
    nb::list out;
    for (std::size_t i = 0; i < size(); ++i) {
        const Word t = before + i + 1;
        out.append(decision_id(t, toss(seed_, t).mark));
    }
    return out;
}

namespace {

using Self = const Decisions&;

// (n,): one value of every choice.
template <typename Out, typename T, typename Get>
Array<Out> column(Self all, Get&& get) {
    std::vector<T> out;
    out.reserve(all.size());
    for (const Choice& choice : all.choices) out.push_back(get(choice));
    return to_numpy<Out>(std::move(out), {all.size()});
}

template <auto Field>
Array<double> doubles_of(Self all) {
    return column<double, double>(all, [](const Choice& c) { return c.*Field; });
}

Array<std::int64_t> steps(Self all) {
    std::vector<std::int64_t> out(all.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(all.before + i + 1);
    return to_numpy<std::int64_t>(std::move(out), {all.size()});
}

Array<std::int64_t> tags(Self all) {
    return column<std::int64_t, std::int64_t>(all, [](const Choice& c) { return c.tag; });
}

Array<std::int64_t> indices(Self all) {
    return column<std::int64_t, std::int64_t>(all, [](const Choice& c) { return c.arm; });
}

template <auto Field>
Array<bool> truths_of(Self all) {
    return column<bool, std::uint8_t>(all, [](const Choice& c) { return std::uint8_t{c.*Field}; });
}

nb::list greedy(Self all) {
    nb::list out;
    for (const Choice& choice : all.choices) {
        if (choice.explored && choice.greedy == Choice::Greedy::unknown)
            out.append(nb::none());
        else
            out.append(!choice.explored || choice.greedy == Choice::Greedy::yes);
    }
    return out;
}

nb::list designs(Self all) {
    nb::list out;
    for (const Choice& choice : all.choices) out.append(design_of(choice));
    return out;
}

}  // namespace

void bind_decisions(nb::module_& m) {
    nb::class_<Decisions>(m, "Decisions", nb::is_final(), "Many decisions in columns; each item is a Decision.")
        .def("__len__", &Decisions::size)
        .def(
            "__iter__", [](Decisions& s) { return nb::iter(s.items()); },
            nb::sig("def __iter__(self) -> collections.abc.Iterator[Decision]"))
        .def("__getitem__", &Decisions::item, nb::arg("row"), nb::sig("def __getitem__(self, row: int, /) -> Decision"))
        .def_prop_ro("ids", &Decisions::ids, nb::sig("def ids(self, /) -> list[str]"), "The name of each decision.")
        .def_prop_ro("arms", &Decisions::arms, nb::sig("def arms(self, /) -> list[str | int]"), "The labels to play.")
        .def_prop_ro("eligible", &Decisions::eligible, nb::sig("def eligible(self, /) -> tuple[str | int, ...] | None"),
                     "The labels of the arms that could be played; None if all that were not retired could.")
        .def_prop_ro("t", &steps, owned, "(n,): the steps.")
        .def_prop_ro("units", &Decisions::units, nb::sig("def units(self, /) -> list[str | None] | None"),
                     "The unit that each is of; None if none is of one.")
        .def_prop_ro("epochs", &Decisions::epochs, nb::sig("def epochs(self, /) -> list[int | None] | None"),
                     "The epoch that each unit met; None if none is of a unit.")
        .def_prop_ro(
            "X", [](Self s) { return to_numpy(std::vector(s.X), {s.size(), s.dim()}); }, owned,
            "(n, d): a copy of the contexts as they were given, before `normalize` scales them.")
        .def_prop_ro("indices", &indices, owned, "(n,): the arms by index.")
        .def_prop_ro("propensities", &doubles_of<&Choice::propensity>, owned,
                     "(n,): the probability with which each arm was to be played; see `Decision.propensity`.")
        .def_prop_ro("marginal", &truths_of<&Choice::marginal>, owned,
                     "(n,): which propensities are over all coins, not given what kind of step the coin made it.")
        .def_prop_ro("exploration_propensities", &doubles_of<&Choice::exploration_propensity>, owned,
                     "(n,): the probability of each arm given that the step explores; NaN if the policy has none.")
        .def_prop_ro("exploration_rates", &doubles_of<&Choice::exploration_rate>, owned,
                     "(n,): the probability that each step explores; NaN if the policy has none.")
        .def_prop_ro("min_exploration_probabilities", &doubles_of<&Choice::min_exploration_probability>, owned,
                     "(n,): the smallest probability of an eligible arm given that the step explores; NaN if the "
                     "policy has none.")
        .def_prop_ro("explored", &truths_of<&Choice::explored>, owned, "(n,): which steps explored.")
        .def_prop_ro("optimistic", &truths_of<&Choice::optimistic>, owned,
                     "(n,): which steps the coin made optimistic; all False for policies without such steps.")
        .def_prop_ro("tags", &tags, owned, "(n,): the number that the policy attached to each for its own use.")
        .def_prop_ro("greedy", &greedy, nb::sig("def greedy(self, /) -> list[bool | None]"),
                     "Whether each arm is the best-looking one; None where a step that was sure to explore did not "
                     "look.")
        .def_prop_ro("designs", &designs, nb::sig("def designs(self, /) -> list[str]"),
                     "How each arm was found: by its turn, by a coin that no context moves, or by the policy's own "
                     "choice.")
        .def(
            "to_arrow", [](nb::handle self) { return handed_over(Part::arrow_table)(self); },
            nb::sig("def to_arrow(self) -> typing.Any"),
            R"(Return them as a pyarrow table, with a column for every entry of `Decision.to_dict`.

Examples
--------
>>> import armlet
>>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=4), seed=1)
>>> bandit.decide_many([[0.5], [1.0]]).to_arrow().select(["t", "arm"]).to_pylist()
[{'t': 1, 'arm': 'b'}, {'t': 2, 'arm': 'a'}])")
        .def(
            "__arrow_c_stream__",
            [](nb::handle self, nb::object schema) {
                return handed_over(Part::arrow_table)(self).attr("__arrow_c_stream__")(schema);
            },
            nb::arg("requested_schema").none() = nb::none(),
            nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"),
            "The same for whatever reads Arrow streams: polars.DataFrame(decisions), pandas.DataFrame.from_arrow.")
        .def("__repr__", [](Self s) { return "<" + std::to_string(s.size()) + " decisions>"; });
}

}  // namespace armlet
