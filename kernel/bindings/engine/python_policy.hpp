// A policy that runs in Python, asked step by step: what it answers is checked before anybody acts on it.
#pragma once
#include <optional>

#include "bindings/arrays.hpp"
#include "coins/philox.hpp"
#include "rules/choice.hpp"

namespace armlet {

// One event as `update` takes it; the reward is in the policy's own sense (more is better).
struct Event {
    Word t;
    std::uint32_t arm;
    const double* x;
    double reward, weight, propensity;
    bool explored;
    std::int32_t tag;
    std::optional<double> replaces;
    const double *outcomes = nullptr, *outcomes_before = nullptr;  // where there are several
};

class PythonPolicy {
  public:
    PythonPolicy(nb::object policy, nb::object state, std::size_t dim);

    Choice decide(Word step, const double* x, const Coins& coins, Arms eligible, std::size_t n_arms) const;
    // Writes one probability for each of n_arms.
    void probabilities(Word step, const double* x, Arms eligible, std::size_t n_arms, double* out) const;
    void update(const Event& event) const;
    void check_estimates(const nb::object& theta, std::size_t n_arms) const;

    int traverse(visitproc visit, void* arg) const;

  private:
    Choice read_choice(Word step, const nb::object& answer, Arms eligible, std::size_t n_arms) const;
    void read_exploring(Word step, const nb::object& answer, Choice& choice) const;
    [[noreturn]] void refuse(const char* method, Word step, const std::string& what) const;

    nb::object policy_, state_;
    std::size_t dim_;
    nb::object coins_type_, interaction_type_;
};

}  // namespace armlet
