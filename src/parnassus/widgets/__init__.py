"""Controls and answers of interactive probes: typed inputs with limits, images and values as output; no web code."""

from parnassus.widgets.answers import (
    Animation,
    Answer,
    Bars,
    Curves,
    Graph,
    GraphEdge,
    GraphNode,
    Images,
    Numbers,
    Trajectories,
)
from parnassus.widgets.controls import (
    Control,
    DrawingPad,
    FloatSlider,
    IntSlider,
    Plane,
    PointPicker,
    PointsPicker,
    Select,
    TextInput,
)
from parnassus.widgets.evaluation import evaluate_probe, initial_values, read_controls

__all__ = [
    "Animation",
    "Answer",
    "Bars",
    "Control",
    "Curves",
    "DrawingPad",
    "FloatSlider",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "Images",
    "IntSlider",
    "Numbers",
    "Plane",
    "PointPicker",
    "PointsPicker",
    "Select",
    "TextInput",
    "Trajectories",
    "evaluate_probe",
    "initial_values",
    "read_controls",
]
