#include <exception>
#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/budget/pacer.hpp"
#include "bindings/engine/decisions.hpp"
#include "bindings/handed_over.hpp"
#include "bindings/rule_binding.hpp"

NB_MODULE(_kernel, m) {
    m.doc() = "The compiled part of Armlet. Import it through armlet.kernel.";
    nanobind::set_leak_warnings(false);  // what a program still holds when it ends by an exception is not a leak
    armlet::load_numpy();
    nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const std::domain_error& error) {
            armlet::set_policy_error(error);
        }
    });
    armlet::bind_decision(m);
    armlet::bind_decisions(m);
    armlet::bind_register(m);
    armlet::bind_rules(m);
    armlet::bind_statistics(m);
    armlet::bind_pacer(m);
    armlet::bind_engine(m);
    armlet::bind_loops(m);
    armlet::bind_simulations(m);
    armlet::bind_row_sums(m);
    armlet::bind_evaluate(m);
    armlet::bind_race(m);
    armlet::bind_subset_search(m);
    armlet::bind_json(m);
    armlet::bind_lines(m);
    armlet::bind_events(m);
    armlet::bind_playing(m);
    armlet::bind_writing(m);
    armlet::bind_actions(m);
    armlet::bind_action_tables(m);
}
