"""Pages of loops, rendered on the server: what a loop earns, explores and lacks, in words first."""

from armlet.service.page.routes import ROUTES, page_routes

__all__ = ["ROUTES", "page_routes"]
