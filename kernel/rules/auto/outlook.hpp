// What explored rows say about exploring, in free units: how much of it, and of which arms, costs the least regret.
//
// The evidence clock explores arm a until it has about q_a = p share_a rows, and more and more rarely after that. With
// n rows that are shared out alike, all K arms together are explored with probability min(1, K exp(1 - n / p)): at
// every step up to p (1 + log K) rows, then so that n grows by p log(tau / c), where tau counts steps from c = p / rate
// on.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "state/auto_tuned_statistics.hpp"

namespace armlet {

// How to look.
struct Lookout {
    double horizon;  // steps that are going to be played; 0: at every look, ten times as many as were. What is known of
                     // an arm is of use only as long as it is there, so it is looked no further ahead than arms live
    double caution;  // what predicted losses of exploiting are multiplied by
    double most;     // the largest p, as a share of the horizon
    double even;     // the part of p that all arms share alike

    double steps(double t, double life) const { return std::min(horizon > 0.0 ? horizon : 10.0 * t, t + life); }
};

struct Outlook {
    double noise = 0.0;          // standard deviation of a reward, all arms together
    double gap = 0.0;            // what an explored step loses
    std::vector<double> losses;  // what exploiting loses a step, with 1, 1.5, 1.5^2, ... times as many rows
    std::vector<double> shares;  // (n_arms,): of p, whatever they add up to; empty if there is nothing to say
    bool is_blank = false;       // all rewards are the same so far: nothing tells the arms apart, nothing is lost
    double p = 0.0;              // the best for the rest of the horizon; 0 if there is nothing to say
};

// At step t, judged on the contexts kept. Solves the arms that changed.
Outlook look(const Lookout& how, AutoTunedStatistics& tuned, double t);

// The most that p may be, for the evidence clock to explore no more often at `rows` rows than p / t does with the p
// wanted: it would make up at once for all that it has not explored so far, and the next look may think better of it.
double soon(double wanted, double rows, double n_arms, double t);

}  // namespace armlet
