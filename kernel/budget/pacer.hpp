// The price that keeps the spend of a bandit within its budget: a few numbers, a function of the events in their order.
//
// Every cost that is counted moves the price lambda by a factor: up if it is more than what may be spent a decision
// from here on, rho = left / decisions left, down if it is less. This is dual mirror descent on log lambda: the price
// finds its size whatever the units of costs and rewards are. Steps shrink with the noise of costs, and with the number
// of costs that are still to come, since answers to those are late.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace armlet {

struct Plan {
    double total;   // what may be spent
    double length;  // within so many decisions
    bool repeats;   // and again with each further `length` of them
};

class Pacer {
  public:
    explicit Pacer(const Plan& plan) : plan_(plan) {}

    const Plan& plan() const { return plan_; }
    // What a unit of cost counts, in units of rewards; 0 until a cost has been counted, and where the budget is ample.
    double price() const;
    double spent() const { return spent_; }  // in this period
    double decisions() const { return decisions_; }
    double waiting() const { return waiting_; }  // decisions whose cost has not been reported

    // ---- events
    void begin();                               // a decision is made, in a new period if this one is over
    void count(double cost);                    // of a decision that has begun
    void correct(double before, double after);  // a cost that was counted
    void expire();                              // nobody waits for the cost of a decision any more
    void await() { waiting_ += 1.0; }           // somebody does, after all
    void see(double reward);                    // of a row that was learned, under the default weights

    // Whether a decision that begins now may cost as much, if all that have begun may cost `bound` each.
    bool affords(double cost, double bound) const;

    // Adds what another one has counted; the price becomes the mean of both, by the costs that each has counted.
    void merge(const Pacer& other);
    // Takes away what was counted before; the price stays.
    void subtract(const Pacer& earlier);
    // It goes on with another plan: what was spent stays spent, and the price is kept.
    void replan(const Plan& plan) { plan_ = plan; }

    // ---- what must be kept
    static constexpr std::size_t n_values = 10;
    std::vector<double> values() const;
    void restore(std::span<const double> values);

  private:
    double rate() const { return plan_.total / plan_.length; }
    double deviation() const;                             // of rewards, 1 while they have none
    double unit() const { return deviation() / rate(); }  // of prices
    void move(double excess, double gain);

    Plan plan_;
    double price_ = 0.0;                                // with twice its floor, which the price in force is without
    double spent_ = 0.0, decisions_ = 0.0;              // in this period
    double waiting_ = 0.0, counted_ = 0.0;              // costs to come, and those that came, ever
    double mean_ = 0.0, noise_ = 0.0;                   // of late costs; of their excess, squared
    double rows_ = 0.0, reward_ = 0.0, squares_ = 0.0;  // of rewards: how many, mean, squares about it
};

}  // namespace armlet
