// What `decide` answers and `learn` takes back: small, immutable to its holder, mindful of what was learned from it.
#pragma once
#include "bindings/arrays.hpp"
#include "coins/philox.hpp"
#include "rules/choice.hpp"

namespace armlet {

constexpr Word last_step = (Word{1} << 63) - 1;  // clocks are signed in files and tables

// A Python object in one piece of memory, context included: one is made for every step.
struct Decision {
    PyVarObject ob_base;  // with as many items as the context has values
    Word t, mark;
    PyObject* arm;  // the label
    Word table;     // names the table of labels in which the arm has its index
    Word life;      // of the arm, when its reward was learned; 0 if that was elsewhere
    Seed stream;    // whose coins it was made with, if that is known
    bool has_stream;
    std::uint32_t index;
    std::int32_t tag;  // the policy's own
    bool explored, learned;
    double propensity, given_exploring;  // the latter NaN if the policy has no such thing
    double reward, weight;               // what was learned
    double x[1];                         // as it was given, before any scaling

    std::size_t dim() const { return static_cast<std::size_t>(ob_base.ob_size); }
    std::string id() const;
};

// A pending decision about a context of `dim` values, yet to be filled in.
nb::object new_decision(std::size_t dim);
inline Decision& decision_of(const nb::object& made) { return *reinterpret_cast<Decision*>(made.ptr()); }
// What a caller passed as a decision, or TypeError.
Decision& as_decision(nb::handle given);
// Fills in which step it is of, by whose coins.
void stamp(Decision& decision, Word t, Word mark, Seed stream);
// Fills in which arm is played and why.
void settle(Decision& decision, const Choice& choice, nb::object label, Word table);

// The answer to many contexts at once, in columns; the decisions themselves are made when somebody asks for one.
class Decisions {
  public:
    Decisions(Word before, Seed seed, nb::list labels, Word table, std::size_t dim, std::vector<double>&& contexts);

    void note(std::size_t row, const Choice& choice);
    std::size_t size() const { return index.size(); }
    nb::object item(std::ptrdiff_t row);
    const nb::list& items();
    nb::list arms() const;

    Word before;            // the clock when they were asked for: row i is step before + i + 1
    std::vector<double> X;  // (rows, dim)
    std::vector<std::int64_t> index;
    std::vector<double> propensities, given_exploring;
    std::vector<std::uint8_t> explored;
    std::vector<std::int32_t> tags;

  private:
    nb::object make(std::size_t row) const;

    Seed seed_;
    nb::list labels_;
    Word table_;
    std::size_t dim_;
    nb::list made_;  // each decision once, so that it can remember
};

void bind_decision(nb::module_& m);

}  // namespace armlet
