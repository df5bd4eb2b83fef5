"""Makes one picture that moves of several: `animate.py OUT.gif FRAME.png=MILLISECONDS ...`.

All frames share a palette, so that what stays the same costs nothing.
"""

import sys

from PIL import Image

COLOURS = 96


def main(out: str, *frames: str) -> None:
    """Write the picture."""
    paths, times = zip(*(frame.rsplit("=", 1) for frame in frames), strict=True)
    pictures = [Image.open(path).convert("RGB") for path in paths]
    together = Image.new("RGB", (pictures[0].width, pictures[0].height * len(pictures)))
    for place, picture in enumerate(pictures):
        together.paste(picture, (0, place * picture.height))
    palette = together.quantize(COLOURS, dither=Image.Dither.NONE)
    first, *rest = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    first.save(
        out,
        save_all=True,
        append_images=rest,
        duration=[int(t) for t in times],
        loop=0,
        optimize=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
