// A block of a log played again: decisions decided again and rewards learned, with no Python frame for each of them.
#include <charconv>
#include <cstdio>

#include "bindings/binding.hpp"
#include "bindings/engine/engine.hpp"
#include "bindings/log/events.hpp"

namespace armlet {

namespace {

// A column of a block, which outlives it.
template <typename T>
struct Column {
    Column(nb::handle block, const char* name) : array(nb::cast<decltype(array)>(block.attr(name))) {}
    T operator[](std::size_t i) const { return array.data()[i]; }
    nb::ndarray<const T, nb::c_contig, nb::device::cpu> array;
};

nb::object id_of(std::int64_t t, std::uint64_t mark) {
    char text[40];
    char* end = std::to_chars(text, text + 20, t).ptr;
    *end++ = '-';
    for (int shift = 60; shift >= 0; shift -= 4) *end++ = "0123456789abcdef"[mark >> shift & 15];
    return nb::steal(PyUnicode_FromStringAndSize(text, end - text));
}

bool is_equal(nb::handle a, nb::handle b) { return PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ) == 1; }

// What a decision has, and a column says of it, where null is NaN.
bool is_same(double made, double written) { return made == written || (std::isnan(made) && std::isnan(written)); }

std::int8_t greedy_code(const Decision& d) {
    return d.greedy == Choice::Greedy::unknown ? -1 : d.greedy == Choice::Greedy::yes;
}

class Player {
  public:
    Player(nb::handle bandit, nb::handle block, nb::tuple known)
        : engine_(nb::cast<Engine&>(bandit)),
          block_(block),
          known_(known),
          labels_(block.attr("labels")),
          texts_(block.attr("texts")),
          dim_(X_.array.shape(1)),
          row_(to_numpy(std::vector<double>(dim_), {dim_})),
          context_(nb::cast(row_)) {}

    // Plays events from `begin` up to `end`; stops at one that it cannot play, and at a decision that differs.
    nb::tuple play(std::size_t begin, std::size_t end) {
        std::size_t decision = 0, reward = 0, place = 0;
        for (; place < begin; ++place) decision += is(place, EventKind::decide), reward += is(place, EventKind::learn);
        for (; place < end && !is(place, EventKind::other); ++place) {
            if (is(place, EventKind::learn)) {
                if (!learn(reward++)) break;
                continue;
            }
            const nb::object made = decide(decision);
            if (!made.is_valid()) break;
            if (!is_as_written(decision_of(made), decision)) return nb::make_tuple(place, made);
            ++decision;
        }
        return nb::make_tuple(place, nb::none());
    }

  private:
    bool is(std::size_t place, EventKind kind) const { return kind_[place] == static_cast<std::int8_t>(kind); }

    // Whether a call was refused, which leaves all as it was: Python then says why.
    static bool is_refusal(const nb::python_error& error) {
        return error.matches(PyExc_Exception) && !error.matches(PyExc_Warning);
    }

    nb::object decide(std::size_t i) {
        if (!has_x_[i] || (epoch_[i] >= 0 && unit_[i] < 0)) return {};
        for (std::size_t j = 0; j < dim_; ++j) row_.data()[j] = X_.array.data()[i * dim_ + j];
        const nb::object eligible = eligible_of(i), unit = text_of(unit_[i]),
                         epoch = epoch_[i] < 0 ? nb::none() : nb::object(nb::int_(epoch_[i])), marginal = marginal_;
        Asked asked{.x = context_, .eligible = eligible, .propensity = marginal, .at = static_cast<Word>(t_[i])};
        try {
            if (unit_[i] >= 0) asked.unit = unit_given(unit, epoch);
            const nb::object made = engine_.decide(asked);
            const nb::object id = id_of(t_[i], mark_[i]);
            if (PyDict_SetItem(known_[0].ptr(), id.ptr(), made.ptr()) != 0) throw nb::python_error();
            return made;
        } catch (const nb::python_error& error) {
            if (is_refusal(error)) return {};
            throw;
        } catch (const std::domain_error&) {
            return {};
        }
    }

    bool learn(std::size_t i) {
        const nb::object id = id_of(learn_t_[i], learn_mark_[i]);
        for (nb::handle some : known_) {
            PyObject* made = PyDict_GetItemWithError(some.ptr(), id.ptr());
            if (!made) continue;
            try {
                engine_.learn(made, nb::float_(reward_[i]), nb::float_(weight_[i]));
                return true;
            } catch (const nb::python_error& error) {
                if (is_refusal(error)) return false;
                throw;
            } catch (const std::domain_error&) {
                return false;
            }
        }
        return false;
    }

    nb::object text_of(std::int32_t place) const {
        return place < 0 ? nb::none() : nb::object(texts_[static_cast<std::size_t>(place)]);
    }
    nb::object eligible_of(std::size_t i) const {
        if (eligible_ends_[i] == eligible_ends_[i + 1]) return nb::none();
        nb::list out;
        for (auto at = eligible_ends_[i]; at < eligible_ends_[i + 1]; ++at)
            out.append(labels_[static_cast<std::size_t>(eligible_[static_cast<std::size_t>(at)])]);
        return out;
    }

    bool is_as_written(const Decision& d, std::size_t i) const {
        const bool has_same_chances = is_same(d.propensity, propensity_[i]) && is_same(d.exploration_rate, rate_[i]) &&
                                      is_same(d.exploration_propensity, exploration_propensity_[i]) &&
                                      is_same(d.min_exploration_probability, least_[i]);
        return d.marginal && has_same_chances && d.mark == mark_[i] && d.explored == explored_[i] &&
               d.optimistic == optimistic_[i] && greedy_code(d) == greedy_[i] && d.tag == tag_[i] && design_[i] >= 0 &&
               text(texts_[static_cast<std::size_t>(design_[i])]) == d.design() &&
               is_equal(d.arm, labels_[static_cast<std::size_t>(arm_[i])]) && has_same_lists(d, i);
    }
    bool has_same_lists(const Decision& d, std::size_t i) const {
        if (d.has_unit() && (epoch_[i] < 0 || d.extras->epoch != static_cast<Word>(epoch_[i]))) return false;
        for (std::size_t j = 0; j < d.dim(); ++j)
            if (!is_same(d.x[j], X_.array.data()[i * dim_ + j])) return false;
        const nb::object eligible = eligible_of(i);
        if (!d.eligible || eligible.is_none()) return !d.eligible && eligible.is_none();
        return is_equal(nb::steal(PySequence_List(d.eligible)), eligible);
    }

    Engine& engine_;
    nb::handle block_;
    nb::tuple known_;  // dicts of decisions by id, of which the first takes new ones
    nb::list labels_, texts_;
    nb::object marginal_ = nb::str("marginal");
    Column<std::int8_t> kind_{block_, "kind"}, explored_{block_, "explored"}, optimistic_{block_, "optimistic"},
        greedy_{block_, "greedy"};
    Column<bool> has_x_{block_, "has_x"};
    Column<std::int64_t> t_{block_, "t"}, tag_{block_, "tag"}, epoch_{block_, "epoch"},
        eligible_ends_{block_, "eligible_ends"}, learn_t_{block_, "learn_t"};
    Column<std::uint64_t> mark_{block_, "mark"}, learn_mark_{block_, "learn_mark"};
    Column<std::int32_t> arm_{block_, "arm"}, design_{block_, "design"}, unit_{block_, "unit"},
        eligible_{block_, "eligible"};
    Column<double> X_{block_, "X"}, propensity_{block_, "propensity"}, rate_{block_, "exploration_rate"},
        exploration_propensity_{block_, "exploration_propensity"}, least_{block_, "min_exploration_probability"},
        reward_{block_, "reward"}, weight_{block_, "weight"};
    std::size_t dim_;
    Array<double> row_;   // the context of a decision
    nb::object context_;  // it as Python has it
};

nb::tuple play_block(nb::handle bandit, nb::handle block, std::size_t begin, std::size_t end, nb::tuple known) {
    return Player(bandit, block, known).play(begin, end);
}

}  // namespace

void bind_playing(nb::module_& m) {
    m.def("play_block", &play_block, nb::arg("bandit"), nb::arg("block"), nb::arg("begin"), nb::arg("end"),
          nb::arg("known"),
          nb::sig("def play_block(bandit: Engine, block: object, begin: int, end: int, known: tuple[dict[str, Any], "
                  "...]) -> tuple[int, Decision | None]"),
          "Plays the decisions and rewards of a block again; gives where it stops, and the decision made there if it "
          "is not as it is written. Where it stops for another reason, nothing of that event was done. `known` are "
          "dicts of decisions by id, of which the first takes those that are made.");
}

}  // namespace armlet
