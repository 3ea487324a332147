"""Draw the pictures of docs/integrations/optuna.md: two studies in optuna-dashboard.

Run it from anywhere: `python docs/pictures/draw_dashboard.py DASHBOARD`, with the path of the
program optuna-dashboard and with Chromium installed; it writes dashboard-pruning.png and
dashboard-front.png beside itself. The code is that of the page: it is read from there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import optuna

HERE = Path(__file__).parent
PAGE = HERE.parent / "integrations" / "optuna.md"
PORT = 8093
SIZE = {"pruning": (1500, 2080), "front": (1500, 640)}


def shoot(url: str, picture: Path, size: tuple[int, int]) -> None:
    """A picture of a page, once its charts are drawn."""
    command = [
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--virtual-time-budget=15000", f"--window-size={size[0]},{size[1]}"),
        *(f"--screenshot={picture}", url),
    ]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def shrink(picture: Path) -> None:
    """Fewer colours and two thirds of the width, so that it stays small."""
    from PIL import Image

    image = Image.open(picture).convert("RGB")
    small = image.resize((image.width * 2 // 3, image.height * 2 // 3), Image.Resampling.LANCZOS)
    small.quantize(128, dither=Image.Dither.NONE).save(picture, optimize=True)


def main(dashboard: str) -> None:
    """Run the page's studies in a folder of their own, and look at them."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        names: dict[str, object] = {}
        for block in blocks:
            exec(compile(block, "optuna.md", "exec"), names)
        server = subprocess.Popen(
            [dashboard, "sqlite:///study.db", "--port", str(PORT)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            for _ in range(100):
                time.sleep(0.2)
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{PORT}/").close()
                    break
                except OSError:
                    continue
            for name, (kind, size) in zip(("digits", "small"), SIZE.items(), strict=True):
                study = optuna.load_study(study_name=name, storage="sqlite:///study.db")
                picture = HERE / f"dashboard-{kind}.png"
                shoot(f"http://127.0.0.1:{PORT}/dashboard/studies/{study._study_id}", picture, size)
                shrink(picture)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
