"""Sends random quotes to a server: feed.py [URL] [MESSAGES_PER_SECOND] [SECONDS]

quarrier serve --data kept --pages examples/live/pages
python examples/live/feed.py
xdg-open http://localhost:5434/pages/dashboard.html
"""

from __future__ import annotations

import random
import sys
import time

import quarrier

SYMBOLS = {"ABC": 12.5, "DEF": 48.0, "GHI": 101.0, "KLM": 7.25, "QRY": 333.0, "WXY": 64.0}


def main(url: str = "http://localhost:5434", per_second: float = 200, seconds: float = 60) -> None:
    """Sends a batch each tenth of a second; the server stores each on disk before the next one."""
    prices = dict(SYMBOLS)
    draw = random.Random(7)
    end = time.monotonic() + seconds
    number = 0
    with quarrier.connect(url) as db:
        columns = "id bigint, symbol text, price double precision, qty bigint"
        db.query(f"CREATE TABLE IF NOT EXISTS quotes ({columns})")
        with db.writer("quotes") as writer:
            while time.monotonic() < end:
                started = time.monotonic()
                for _ in range(max(1, round(per_second / 10))):
                    number += 1
                    symbol = draw.choice(list(prices))
                    prices[symbol] = round(max(0.01, prices[symbol] * draw.gauss(1, 0.002)), 4)
                    quote = {
                        "id": number,
                        "symbol": symbol,
                        "price": prices[symbol],
                        "qty": draw.randrange(1, 500),
                    }
                    writer.send(quote)
                writer.flush()
                time.sleep(max(0.0, 0.1 - (time.monotonic() - started)))
    print(f"sent {number} quotes")


if __name__ == "__main__":
    main(*sys.argv[1:2], *(float(word) for word in sys.argv[2:]))
