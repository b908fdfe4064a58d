"""Tables that others have printed about off-policy evaluation, rebuilt with the estimators of Armlet."""
