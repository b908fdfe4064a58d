// The answer to many contexts at once, in columns; the decisions themselves are made when somebody asks for one.
#pragma once
#include "bindings/engine/decision.hpp"

namespace armlet {

class Decisions {
  public:
    // `eligible` is a tuple of labels, or null; `weights` are of outcomes, or none.
    Decisions(Word before, Seed seed, nb::list labels, Word table, std::size_t dim, Word features,
              std::vector<double>&& contexts, nb::object eligible, NamedNumbers weights);

    void note(std::size_t row, const Choice& choice) { choices[row] = choice; }
    void note_unit(std::size_t row, nb::object unit, Word epoch);
    std::size_t size() const { return choices.size(); }
    std::size_t dim() const { return dim_; }
    nb::object item(std::ptrdiff_t row);
    const nb::list& items();
    nb::list arms() const;
    nb::list ids() const;
    nb::object units() const;   // a list with None for rows without one, or None if there is none at all
    nb::object epochs() const;  // also
    nb::object eligible() const { return eligible_.is_valid() ? eligible_ : nb::none(); }

    Word before;            // the clock when they were asked for: row i is step before + i + 1
    std::vector<double> X;  // (rows, dim)
    std::vector<Choice> choices;

  private:
    nb::object make(std::size_t row) const;

    Seed seed_;
    nb::list labels_;
    Word table_;
    std::size_t dim_;
    Word features_;
    nb::object eligible_;
    NamedNumbers weights_;
    std::vector<nb::object> units_;  // of every row, null where there is none; empty if there is none at all
    std::vector<Word> epochs_;       // also
    nb::list made_;                  // each decision once, so that it can remember
};

void bind_decisions(nb::module_& m);

}  // namespace armlet
