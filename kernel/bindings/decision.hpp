// What `decide` answers and `learn` takes back: small, immutable to its holder, and mindful of what was learned from it.
#pragma once
#include <memory>

#include "arrays.hpp"
#include "epsilon_greedy.hpp"
#include "philox.hpp"

namespace armlet {

struct Decision {
    Word t = 0, mark = 0;
    nb::object arm;           // the label
    std::uint32_t index = 0;  // of the arm in the table of labels that `table` names
    Word table = 0;
    double propensity = 1.0;
    bool explored = false;
    bool learned = false;
    double reward = 0.0, weight = 1.0;  // what was learned
    std::uint32_t dim = 0;
    std::unique_ptr<double[]> x;

    std::string id() const;
};

// The answer to many contexts at once, in columns; the decisions themselves are made when somebody asks for one.
class Decisions {
  public:
    Decisions(Word before, Seed seed, nb::list labels, Word table, std::size_t dim, std::vector<double>&& contexts);

    void note(std::size_t row, const Choice& choice);
    std::size_t size() const { return index.size(); }
    nb::object item(std::ptrdiff_t row);
    nb::list arms() const;

    Word before;            // the clock when they were asked for: row i is step before + i + 1
    std::vector<double> X;  // (rows, dim)
    std::vector<std::int64_t> index;
    std::vector<double> propensities;
    std::vector<std::uint8_t> explored;

  private:
    Decision make(std::size_t row) const;

    Seed seed_;
    nb::list labels_;
    Word table_;
    std::size_t dim_;
    nb::list made_;  // each decision once, so that it can remember
};

void bind_decision(nb::module_& m);

}  // namespace armlet
