// What is known of every arm: sums of its rows, rows that wait to be added to them, and what is solved from them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "state/digits/lost_digits.hpp"
#include "state/exploration_weights.hpp"
#include "state/fading/discount.hpp"
#include "state/ridge.hpp"
#include "state/solved.hpp"
#include "state/sums.hpp"
#include "state/under_way.hpp"
#include "state/units.hpp"
#include "state/waiting_rows.hpp"

namespace armlet {

// A const method changes nothing, so what may have to add waiting rows or solve first is none.
class Statistics {
  public:
    Statistics(std::size_t n_arms, Units units, Ridge ridge);

    std::size_t n_arms() const { return sums_.n_arms(); }
    // Values in a context.
    std::size_t dim() const { return units_.dim(); }
    const Units& units() const { return units_; }
    Ridge ridge() const { return solved_.ridge(); }

    // Algorithm 1's n += 1, b += r x, A += x x', with a weight; a negative weight takes a row back. `outcomes` are
    // those of the row, where there are several; `when` its decision was made, where rows fade.
    void add(std::size_t arm, const double* x, double reward, double weight, const double* outcomes = nullptr,
             When when = {});
    // The row stays, its reward changes, and its outcomes.
    struct Change {
        double from, to;
        const double *outcomes_from = nullptr, *outcomes_to = nullptr;
    };
    void correct(std::size_t arm, const double* x, const Change& reward, double weight, When when = {});
    // What taking rows back has cost: an arm that lost too much was emptied.
    const LostDigits& lost_digits() const { return lost_digits_; }
    LostDigits::News take_lost() { return lost_digits_.take_news(); }
    void restore_lost_digits(const LostDigits& other) { lost_digits_ = other; }

    // From now on rows fade: sums are as of a clock, that of the latest decision that was learned, and looked at as of
    // now. Widths are those of a mean of weighted rows, or plain ones. There are no rows yet.
    enum class Widths { plain, weighted };
    void open_discount(const Discount& discount, Widths widths);
    const Discount& discount() const { return discount_; }
    Discount::Tick clock() const { return clock_; }
    Discount::Tick looked_at() const { return look_; }
    // Everything below is as of then, or of the clock if that is later by steps, or by less than a half-life. It
    // changes no sums.
    void look(When when);
    void look_at(Discount::Tick tick);  // or as of the clock, if that is later
    // Brings the sums to a later clock.
    void advance(Discount::Tick tick);
    // Before sums of that clock are restored.
    void restore_clock(Discount::Tick tick);
    // What the sums are multiplied by, as they are looked at.
    double fade() const { return fade_; }
    // What a row counts there.
    double aged(double weight, When when) const;
    // Whether widths are of weighted rows, so that factors do not tell them.
    bool has_weighted_widths() const { return solved_.keeps_spreads(); }
    std::span<const double> squares(std::size_t arm) const { return sums_.squares(arm); }
    std::span<const double> squares() const { return sums_.squares(); }
    void restore_squares(std::size_t arm, std::span<const double> square) { sums_.restore_squares(arm, square); }

    // From now on every row has n outcomes next to its reward, which is their sum by weights that stay. Estimates and
    // noise are of sum_j w_j o_j by any weights; the ridge is that of the reward. There are no rows yet.
    void open_outcomes(std::size_t n);
    std::size_t n_outcomes() const { return outcomes_.n(); }
    const OutcomeSums& outcomes() const { return outcomes_; }
    // By other weights, with what is added to each arm in free units; nothing is learned or solved again.
    void weigh(std::span<const double> weights, std::span<const double> offsets) { solved_.weigh(weights, offsets); }
    // After refresh(), before noise, deviations, fits or a typical norm are looked at.
    void refresh_noise() { solved_.weigh_noise(); }
    void refresh_fits() { solved_.weigh_fits(); }
    // What weights are unless others are given: those of the reward.
    void set_usual_weights(std::span<const double> weights, std::span<const double> offsets);
    void use_usual_weights() {
        if (outcomes_.is_open()) weigh(usual_weights_, usual_offsets_);
    }
    // The reward of every row is to be the sum by these weights.
    void reweigh(std::span<const double> weights);
    std::int64_t changes() const { return solved_.changes(); }
    // Adds the sums of an arm of other statistics to an arm of these.
    void merge(std::size_t arm, Statistics& other, std::size_t other_arm);
    // Takes the sums of an arm of earlier statistics away; what is left of no rows is nothing.
    void subtract(std::size_t arm, Statistics& earlier, std::size_t earlier_arm);
    // From now on rows wait, up to eight an arm. Anyone who looks at the sums adds them first.
    void buffer_rows();
    void append_arm();
    void erase_arm(std::size_t arm);
    // Everything that is solved is to be a function of the sums alone: in free units takes means and deviations of all
    // rows again.
    void renew();
    // From now on the ridge is what the sums make likely, in free units: found again when rows have doubled at a change
    // of units (or, where they fade, as many have come as there were), and whenever sums change by other means than a
    // row: then at the next look, or before the next row.
    void find_ridge() { finds_ridge_ = units_.is_free(); }
    bool finds_ridge() const { return finds_ridge_; }
    // The ridge that was found, and for how many rows; where rows fade, how many are left until it is found again.
    std::array<double, 2> found_ridge() {
        if (is_ridge_due_) take_ridge();
        return {ridge().value, found_for_};
    }
    void restore_ridge(double value, double rows) {
        if (value != ridge().value) solved_.set_ridge({Ridge::Kind::constant, value});
        found_for_ = rows, is_ridge_due_ = false;
    }
    // How often that was done.
    std::int64_t renewals() const { return renewals_; }
    // From now on an arm is solved only when it has gained enough rows since its last solve, or one that tells much,
    // and then for the rows that it has at that moment, by anyone who adds the row: nobody who looks has to wait.
    // Factors are kept, and residuals with penalties. After rows that are taken back, corrected or added many at a
    // time, all arms are solved for the rows that they have, by who looks first or adds the next row: the bits are the
    // same whether anyone looked in between.
    void solve_rarely();
    // Residuals with penalties without that.
    void keep_penalties() { solved_.keep_penalties(); }
    // Until release(), many rows come: where arms are solved rarely they are only added up. Then all is a function of
    // the sums again, as after renew(). Those who restore what was there before let go instead.
    void hold() { is_held_ = true; }
    void release();
    void let_go() { is_held_ = false; }
    // What adds a row ends with this; who merges or changes arms calls it when all is done.
    void finish() {
        if (is_paced_ && !is_held_) refresh();
    }

    // From now on refresh() keeps, for every arm, a Cholesky factor of V_a = shift I + A_a. It doubles the memory, so
    // it is done for rules that ask for widths. Each factor is made from the sums again: a function of them alone.
    void keep_factors() { solved_.keep_factors(); }

    // Solves the arms that changed.
    void refresh() {
        if (is_ridge_due_) take_ridge();
        if (solved_.is_stale()) solve_stale();
    }
    // How many values a context has where it is looked at, which is what all that follows works with.
    std::size_t view_size() const { return units_.size(); }
    // The context as it is looked at: itself, or in standard units, for which `room` has `view_size()` places.
    const double* view(const double* x, double* room) const { return units_.view(x, room); }

    // Only after refresh().
    Estimates estimates() const { return solved_.estimates(); }
    std::size_t width() const { return solved_.width(); }
    // out[i] = sqrt(x' V_a^-1 x) of arm a = arms[i], with factors kept and fresh.
    void widths(std::span<const std::uint32_t> arms, const double* x, double* out) const {
        solved_.widths(arms, x, out);
    }
    // One arm's kept factor, also.
    const double* factor(std::size_t arm) const { return solved_.factor(arm); }
    // At least the width at any x so large, rounding included; infinite if nothing is known.
    double widest(std::size_t arm, Extent x) const { return solved_.widest(arm, x); }
    // At least what is left of a width divided by what is left of x, once its first value is solved; also.
    double residual_bound(std::size_t arm) const { return solved_.residual_bound(arm); }
    // out[a] = at least the width at x of each of these arms, and little more; if that is kept. Infinite where nothing
    // is known.
    bool keeps_coarse() const { return solved_.keeps_coarse(); }
    void width_bounds(std::span<const std::uint32_t> arms, const double* x, double* out) const {
        solved_.width_bounds(arms, x, out);
    }
    // The deviation of rewards about the estimates, with factors kept and fresh: the squared residuals of the arms that
    // have more than d rows, over their rows beyond d. Before any has, the root of the mean squared reward; 1 if
    // nothing was seen.
    double noise() const { return solved_.noise(); }
    // The same, but so that one arm that is much noisier than the others hardly counts.
    double typical_noise() const { return solved_.typical_noise(); }
    // The same for each arm by itself, by a rule; only after refresh().
    void deviations(NoiseRule kind, std::vector<double>& out) const { solved_.deviations(kind, out); }
    double typical_norm() const { return solved_.typical_norm(); }
    std::vector<double> fits() const { return solved_.fits(); }
    std::int64_t solves() const { return solved_.solves(); }
    // log det V_a of every arm, with factors kept and fresh.
    std::span<const double> log_determinants() const { return solved_.log_determinants(); }

    // How many arms may be played, whatever a single step says. Anyone who retires arms tells; it is no part of the
    // sums.
    std::size_t n_active() const { return n_arms() - n_retired_; }
    bool is_active(std::size_t arm) const { return is_retired_[arm] == 0; }
    void set_active(std::size_t arm, bool active);

    // m_a, how many decisions of an arm wait for their reward: kept next to the sums, merged and subtracted with them,
    // for rules that count an arm's rows and those to come. From now on they are counted.
    void count_under_way() { under_way_.open(n_arms()); }
    const UnderWay& under_way() const { return under_way_; }
    void begin_decision(std::size_t arm) {
        if (under_way_.is_open()) under_way_.begin(arm), exploration_weights_.mark(arm);
    }
    void end_decision(std::size_t arm) {
        if (under_way_.is_open()) under_way_.end(arm), exploration_weights_.mark(arm);
    }
    void restore_under_way(std::span<const std::int64_t> counts) {
        under_way_.restore(counts);
        exploration_weights_.mark_all(n_arms());
    }

    // min(1, exp(1 - (n_a + m_a) / q)) of every arm; only after refresh_exploration_weights().
    std::span<const double> exploration_weights() const { return exploration_weights_.values(); }
    void refresh_exploration_weights(double q) {
        exploration_weights_.refresh(q, [this](std::size_t arm) { return count(arm) + under_way_[arm]; });
    }
    // With a q for each arm.
    void refresh_exploration_weights(std::span<const double> quotas) {
        exploration_weights_.refresh(quotas, [this](std::size_t arm) { return count(arm) + under_way_[arm]; });
    }

    // Which change of these statistics was the last that an arm saw: a stamp that no two states of its sums share.
    std::span<const std::int64_t> versions() const { return versions_; }

    // The sums, as `Sums` lays them out, with all rows.
    std::size_t record_size() const { return sums_.record_size(); }
    std::span<const double> record(std::size_t arm) {
        settle(arm);
        return sums_.record(arm);
    }
    std::span<const double> records() {
        settle_all();
        return sums_.records();
    }
    // n of an arm, with the rows that wait.
    double count(std::size_t arm) const { return counts_[arm]; }
    double count() const;  // of all arms
    // Whether no arm has a row; whether some arm has none.
    bool is_empty() const { return witness_ == nobody; }
    bool any_empty() const { return n_empty_ > 0; }
    // Sums in these units; they are looked at again.
    void restore(std::span<const double> records);
    void restore(std::size_t arm, std::span<const double> record);
    // With the units that they were in.
    void restore(std::span<const double> records, std::span<const double> units);
    void restore_units(std::span<const double> units);
    // Another's record of an arm, about this one's origin, and as of this one's clock if that is later.
    std::vector<double> record_from(Statistics& other, std::size_t other_arm) const;
    // Sums of outcomes, with all rows; (2 n,): their origin and means.
    std::span<const double> outcome_records() {
        settle_all();
        return outcomes_.records();
    }
    std::span<const double> outcome_record(std::size_t arm) {
        settle(arm);
        return outcomes_.record(arm);
    }
    // Before the sums of the same rows are restored, and after them and their units.
    void restore_outcome_records(std::span<const double> records) { outcomes_.restore(records); }
    void restore_outcomes(std::size_t arm, std::span<const double> record) {
        settle_unsolved(arm);
        outcomes_.restore(arm, record);
    }
    void restore_outcome_units(std::span<const double> values) { outcomes_.restore_values(values); }
    std::size_t outcomes_solved_size() const { return solved_.outcome_value_size(); }
    std::vector<double> solved_outcomes() const { return solved_.outcome_values(); }
    void restore_solved_outcomes(std::span<const double> values) { solved_.restore_outcomes(values); }
    // What was solved for fewer rows than there are: (K, solved_size()), only after refresh().
    std::size_t solved_size() const { return solved_.value_size(); }
    std::vector<double> solved_values() const { return solved_.values(); }
    void restore_solved(std::span<const double> values) { solved_.restore(values, units_); }
    std::size_t bytes() const;

  private:
    static constexpr std::size_t nobody = SIZE_MAX;

    void touch(std::size_t arm);  // its sums have changed
    void note(std::size_t arm);   // that, but what is solved from them stays
    void touch_all();             // or the arms themselves
    bool is_due(std::size_t arm) const;
    // Rows that an arm solved for `n` of them waits for.
    double rows_due(double n) const;
    // Whether rows since the last solve, with this one, have told more than twice what as many like the others would.
    bool gains(std::size_t arm, const double* x, double weight);
    void look_again(bool anew);
    // What was put off until the next row.
    void catch_up() {
        if (is_ridge_due_) take_ridge();
        if (is_paced_ && solved_.is_stale()) solve_stale();
    }
    void empty_lost(const TakenRow& taken);
    void settle_constants(const TakenRow& taken);
    void take_ridge();
    // Of a row as sums hold it: whether units are to be taken again for it; and whether it tells so much of its arm,
    // whose sums have it, that the arm is to be solved.
    bool leaves_units(const double* row, double weight) const;
    bool has_leverage(std::size_t arm, const double* row, double weight);
    void set_look(Discount::Tick tick);
    // What a row weighs in the sums, which are brought to its clock.
    double age(double weight, When when);
    void halve(std::int64_t times);
    double rows() const;  // n of all arms as the sums have it, regardless of who looks
    void find_witness();
    void count_rows(std::size_t arm) {
        n_empty_ -= !(counts_[arm] > 0.0);
        counts_[arm] = fade_ * waiting_.count(arm, sums_);
        n_empty_ += !(counts_[arm] > 0.0);
    }
    void solve_stale();
    // Adds the rows that wait, after a solve for those before them if the arm is marked; or without, for those who mark
    // it again.
    void settle(std::size_t arm);
    void settle_unsolved(std::size_t arm);
    void settle_all();
    void settle_all_unsolved();
    void mark(std::size_t arm);
    void adopt_origin(const Statistics& other);

    // Another's sums of outcomes of an arm, about this one's origins; and of squared weights.
    std::vector<double> outcomes_from(Statistics& other, std::size_t other_arm) const;
    std::vector<double> squares_from(Statistics& other, std::size_t other_arm) const;
    // What the sums of another are multiplied by to be as of this clock, which is no earlier.
    double since(const Statistics& other) const;

    Units units_;
    std::vector<double> row_;  // room for one
    Sums sums_;                // of the rows that do not wait
    OutcomeSums outcomes_;     // of the same; closed where rows have one reward
    std::vector<double> usual_weights_, usual_offsets_;
    WaitingRows waiting_;
    Solved solved_;
    std::vector<double> counts_;  // n with the rows that wait, side by side
    std::size_t n_empty_;         // arms that have none
    UnderWay under_way_;
    ExplorationWeights exploration_weights_;
    bool is_paced_ = false, is_held_ = false;
    bool finds_ridge_ = false, is_ridge_due_ = false;
    double found_for_ = 0.0;    // rows
    std::vector<double> view_;  // room for one
    std::vector<std::uint8_t> is_retired_;
    std::size_t n_retired_ = 0;
    std::size_t witness_ = nobody;  // an arm that has a row
    std::vector<std::int64_t> versions_;
    std::int64_t changes_ = 0, renewals_ = 0;
    LostDigits lost_digits_;
    Discount discount_;
    Discount::Tick clock_ = 0, look_ = 0;
    double fade_ = 1.0;  // what sums as of the clock are multiplied by, as they are looked at
};

}  // namespace armlet
