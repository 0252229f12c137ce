"""Options that several commands share. `--help` imports this file, so it imports nothing that takes time."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

_SIGNAL = (
    "A file (image, video, sound, array or table), or a name: camera, brick, gravel, clock, hubble, skin, astronaut, "
    "coffee, bach."
)
Signal = Annotated[str, Parameter(help=_SIGNAL)]
# For each of `*signals`, of which there must be at least one.
Signals = Annotated[str, Parameter(required=True, help=f"{_SIGNAL} Any number of them.")]
NetworkPath = Annotated[str, Parameter(help="A .uniphase file, as written by `uniphase fit`.")]

Width = Annotated[int | None, Parameter(help="Neurons per layer. Default: from the size of the signal.")]
Depth = Annotated[
    int | None,
    Parameter(help="Number of hidden layers, not counting the input layer. Default: from the size of the signal."),
]
Omega = Annotated[
    float | None, Parameter(help="Frequency ω of the sines, for the schemes that have one. Default: the scheme's own.")
]
Size = Annotated[
    int | None,
    Parameter(
        help="Resize the signal first, so that its longest axis has this many samples, or the "
        "longer side of a frame of a video."
    ),
]
Space = Annotated[
    Literal["gray", "rgb", "lab"] | None,
    Parameter(help="Colour space of an image or a video. Default: gray or rgb, as stored."),
]
Align = Annotated[
    Literal["centers", "corners"] | None,
    Parameter(
        help="Whether samples lie at the centers of their cells or include the corners of the domain. Default: "
        "centers; corners for the paper's recipe; as it was fitted for a network of a file."
    ),
]
Axes = Annotated[
    int | None,
    Parameter(
        help="Number of coordinate axes of an array. Default: all, except a last one of at most 4 entries, which are "
        "the channels."
    ),
]
Samples = Annotated[
    Literal["points", "averages"] | None,
    Parameter(
        help="What samples are: values at points, or averages over their cells. Default: averages for images, volumes "
        "and video that the network can hold, otherwise points."
    ),
]
Array = Annotated[str | None, Parameter(help="Name of the array in an NPZ or Zarr file that holds several.")]
Coordinates = Annotated[
    str | None, Parameter(help="Columns of a table that are the coordinates, separated by commas, e.g. lon,lat.")
]
Values = Annotated[str | None, Parameter(help="Columns of a table that are the values, separated by commas.")]
Bits = Annotated[
    Literal[8, 16] | None,
    Parameter(
        help="Hidden weights as integers of 8 or 16 bits, with one scale for each row, for a smaller file. Default: as "
        "they are."
    ),
]
Output = Annotated[str | None, Parameter(alias="-o")]
Force = Annotated[bool, Parameter(negative="", help="Replace existing files.")]
Json = Annotated[bool, Parameter(negative="", help="Print one JSON object instead of text.")]
Store = Annotated[str, Parameter(help="Directory of the stored runs. All machines must see it.")]
STORE = "uniphase-lab"


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """The choices for a fit; those that are `None` follow from the signal.

    **Arguments:**

    - `recipe`: the rule for everything that is not given: that of this package, or the paper's protocol.
    - `width`, `depth`, `omega`: of the network.
    - `steps`, `optimizer`, `lr`, `batch`: entries of the `Recipe`.
    - `size`, `space`, `align`, `axes`, `array`, `coordinates`, `values`: how to load the signal, as for `load`;
        columns of a table are separated by commas.
    - `samples`, `mask`, `alpha`, `denoise`, `noise`: what the samples are, which are missing, and how noisy they are.
    - `eval_size`: the size at which the signal is loaded again for a test. Default: as stored, if `size` is smaller.

    !!! example
        ```python
        options = Options(size=128, steps=500)
        ```
    """

    recipe: Literal["default", "paper"] = "default"
    """Rule for everything that is not given. "paper": 256 × 11 (sound: 256 × 5), full batches, Adam at 1e-4 for 3,000
    steps (sound: 5e-5 for 5,000), samples at the corners, every axis of an image from -1 to 1."""
    width: Width = None
    depth: Depth = None
    omega: Omega = None
    steps: int | None = None
    """Number of training steps. Default: from the size of the signal."""
    optimizer: Literal["muon", "adam"] | None = None
    """Default: Muon, in the units of the signal."""
    lr: float | None = None
    """Learning rate at the start. Default: from the depth for Muon, 1e-3 for Adam."""
    batch: int | None = None
    """Samples per step. Default: from the size of the signal."""
    size: Size = None
    eval_size: int | None = None
    """Test on the signal at this size. Default: as stored, if --size is smaller."""
    space: Space = None
    align: Align = None
    axes: Axes = None
    array: Array = None
    coordinates: Coordinates = None
    values: Values = None
    samples: Samples = None
    mask: str | None = None
    """An image of the same size, or an NPY array, that is white (not zero) where samples are missing. They are neither
    fitted nor counted; NaN in an array means the same."""
    alpha: Literal["drop", "mask"] | None = None
    """What to do with the alpha channel of an image: "mask" leaves out pixels that are more than half transparent.
    Default: drop it."""
    denoise: Annotated[bool, Parameter(negative="")] = False
    """Estimate the noise of the signal, and end the fit before it is learned."""
    noise: float | None = None
    """Standard deviation of the noise, in the units of the values (8-bit images lie in [0, 1]), if it is known; as
    --denoise, without the estimate."""
