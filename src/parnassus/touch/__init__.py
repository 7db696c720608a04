"""What a person can touch: controls with a type and a range in, pictures and numbers out; nothing about the web."""

from parnassus.touch.answers import Answer, Arrow, Bars, Box, Curves, Film, Graph, Images, Numbers, Path
from parnassus.touch.asking import answer, controls_of, start_of
from parnassus.touch.controls import Control, Drawing, Pick, Plane, Point, Points, Real, Typed, Whole

__all__ = [
    "Answer",
    "Arrow",
    "Bars",
    "Box",
    "Control",
    "Curves",
    "Drawing",
    "Film",
    "Graph",
    "Images",
    "Numbers",
    "Path",
    "Pick",
    "Plane",
    "Point",
    "Points",
    "Real",
    "Typed",
    "Whole",
    "answer",
    "controls_of",
    "start_of",
]
