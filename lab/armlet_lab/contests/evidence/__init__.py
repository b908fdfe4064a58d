"""Whether evidence is a better clock than steps: news, newcomers, late rewards, trained models, floors."""
