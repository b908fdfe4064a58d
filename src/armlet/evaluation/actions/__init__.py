"""Off-policy evaluation of logs whose actions have features: tables that change, laws over a few of many actions."""
