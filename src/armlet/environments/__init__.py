"""Every world by name. To add one: write its file, add its line."""

from __future__ import annotations

from armlet.environments.customers import Customers
from armlet.environments.delayed import Delayed
from armlet.environments.display_ads import DisplayAds
from armlet.environments.drifting import Drifting
from armlet.environments.figure_a import FigureA
from armlet.environments.figure_b import FigureB
from armlet.environments.group_activity import GroupActivity
from armlet.environments.linear import Linear
from armlet.environments.linear_arms import LinearArms
from armlet.environments.near_ties import NearTies
from armlet.environments.news import News
from armlet.environments.rescaled import Rescaled
from armlet.environments.scheduling import Scheduling
from armlet.environments.section7 import Section7
from armlet.environments.section7_growing import Section7Growing
from armlet.environments.section41 import Section41
from armlet.environments.world import World

ENVIRONMENTS: dict[str, type[LinearArms]] = {
    "FigureA": FigureA,
    "FigureB": FigureB,
    "Section41": Section41,
    "Section7": Section7,
    "Section7Growing": Section7Growing,
    "Scheduling": Scheduling,
    "DisplayAds": DisplayAds,
    "Customers": Customers,
    "GroupActivity": GroupActivity,
    "Linear": Linear,
    "Drifting": Drifting,
    "NearTies": NearTies,
    "News": News,
}
"""Every world that can be drawn; `Delayed` and `Rescaled` are made from another one."""

__all__ = [
    "ENVIRONMENTS",
    "Customers",
    "Delayed",
    "DisplayAds",
    "Drifting",
    "FigureA",
    "FigureB",
    "GroupActivity",
    "Linear",
    "LinearArms",
    "NearTies",
    "News",
    "Rescaled",
    "Scheduling",
    "Section7",
    "Section7Growing",
    "Section41",
    "World",
]
