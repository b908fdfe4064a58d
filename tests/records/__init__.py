"""What the library answers today, as text that is committed: a change that was not meant shows up as a diff.

    PYTHONPATH=tests .venv/bin/python -m records check              compare with what is on record
    PYTHONPATH=tests .venv/bin/python -m records write stores http  write parts again, after a change that was meant

Stores, logs and model files that an earlier Armlet wrote are kept as they are; delete one, and `write` makes another.
"""
