"""The Pareto curve of a log: what policies with outcomes would have had of each under every dial, with a joint band."""
