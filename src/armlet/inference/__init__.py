"""What the sums of a model say about its coefficients, and how surely: intervals, contrasts, explanations."""
