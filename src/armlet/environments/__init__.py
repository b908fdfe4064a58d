"""Every environment by name. To add one: write its class, and import it here."""

from __future__ import annotations

from armlet.environments.catalogue import Catalogue as Catalogue
from armlet.environments.customers import Customers as Customers
from armlet.environments.display_ads import DisplayAds as DisplayAds
from armlet.environments.drifting import Drifting as Drifting
from armlet.environments.environment import Environment as Environment
from armlet.environments.environment import Linear as Linear
from armlet.environments.environment import LinearArms as LinearArms
from armlet.environments.group_activity import GroupActivity as GroupActivity
from armlet.environments.near_ties import NearTies as NearTies
from armlet.environments.news import News as News
from armlet.environments.paper import FigureA as FigureA
from armlet.environments.paper import FigureB as FigureB
from armlet.environments.paper import Section7 as Section7
from armlet.environments.paper import Section7Growing as Section7Growing
from armlet.environments.paper import Section41 as Section41
from armlet.environments.scheduling import Scheduling as Scheduling
from armlet.environments.wrapped import Delayed as Delayed
from armlet.environments.wrapped import Rescaled as Rescaled

ENVIRONMENTS: dict[str, type[LinearArms]] = {
    name: kind
    for name, kind in globals().copy().items()
    if isinstance(kind, type) and issubclass(kind, LinearArms) and kind is not LinearArms
}
"""Every environment of labelled arms that can be drawn, by its name.

`Delayed` and `Rescaled` are made from another one, and the arms of a `Catalogue` have features, which no policy of
labelled arms sees.
"""
