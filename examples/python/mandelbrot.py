"""Draws the Mandelbrot set into one shared array: mandelbrot.py [FILE.pgm]"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from quarrier import parallel

WIDTH, HEIGHT, STEPS = 600, 400, 60


def rows(out: npt.NDArray[np.uint8], start: int) -> None:
    """Fills rows of the image; workers even out the different times that rows take."""
    y = np.linspace(-1.2, 1.2, HEIGHT)[start : start + len(out), None]
    c = np.linspace(-2.2, 0.8, WIDTH)[None, :] + 1j * y
    z = np.zeros_like(c)
    out[:] = 0
    for _ in range(STEPS):
        inside = np.abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]
        out[inside] += 255 // STEPS


def main() -> None:
    """Prints a coarse image if no file is given."""
    image = parallel.init((HEIGHT, WIDTH), "u1", rows)
    assert image[HEIGHT // 2, WIDTH // 2] == 255 // STEPS * STEPS
    if len(sys.argv) > 1:
        with open(sys.argv[1], "wb") as file:
            file.write(b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + image.tobytes())
        return
    for row in image[::20, ::8]:
        print("".join(" .:-=+*#%@"[value // 26] for value in row))


if __name__ == "__main__":
    main()
