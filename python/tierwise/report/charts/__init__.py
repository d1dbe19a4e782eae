"""Charts of an answer as vector graphics; one file per family."""

from tierwise.report.charts.look import NARROW, PAGE_NARROW, PAGE_WIDE, WIDE, Figure, Look, to_png, to_svg

__all__ = ["NARROW", "PAGE_NARROW", "PAGE_WIDE", "WIDE", "Figure", "Look", "to_png", "to_svg"]
