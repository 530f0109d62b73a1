"""Records the answers of svfsc 0.4.1 to random calls: `python record.py > svfsc.json`.

svfsc must be installed. `python record.py --against N` compares quarrier.compat.svfsc with it on N
other runs.

Cases that svfsc gets wrong are left out: a run ends when adjacent blocks are not joined, and after
a failed write, which may have lost data. Every differing write differs at its first byte.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from typing import Any

RUNS = 40
CALLS = 25
BYTES = bytes((7 * at + at // 3) % 256 for at in range(400))


def calls(rng: random.Random, compare: bool, blocks) -> Any:
    """A random call, as name and arguments, with bytes as hexadecimal digits."""
    offset, length = rng.randrange(100), rng.randrange(25)
    match rng.randrange(100):
        case n if n < 40:
            data = bytearray(BYTES[offset : offset + length])
            if data and rng.random() < 0.05:
                data[0 if compare else rng.randrange(len(data))] ^= 0x20
            return ["write", offset, data.hex()]
        case n if n < 60:
            return ["read", offset, length]
        case n if n < 68:
            return ["need", offset, length, rng.choice([0, 0, 8, 40])]
        case n if n < 76:
            wanted = [[rng.randrange(100), rng.randrange(20)] for _ in range(rng.randrange(4))]
            return ["need_many", wanted, rng.choice([0, 8, 40])]
        case n if n < 82:
            return ["has_data", offset, length]
        case n if n < 88:
            return ["erase", rng.choice(blocks)[0] if blocks and n < 86 else offset]
        case n if n < 92:
            return ["lru_punt", 5 * length]
        case 92:
            return ["clear"]
        case _:
            return ["last_file_position"]


def answer(svf: Any, call: list[Any]) -> Any:
    """The call's result or exception, and the resulting state of the file, for JSON."""
    name, *arguments = call
    match name:
        case "write":
            arguments = [arguments[0], bytes.fromhex(arguments[1])]
        case "need_many":
            arguments = [[tuple(pair) for pair in arguments[0]], arguments[1]]
    try:
        result = getattr(svf, name)(*arguments)
    except Exception as error:
        result = [type(error).__name__, str(error)]
    if isinstance(result, bytes):
        result = result.hex()
    if name == "write" and result is not None:
        return [result, None]
    state = [
        svf.blocks(),
        svf.num_bytes(),
        svf.num_blocks(),
        svf.block_touch(),
        list(svf.block_touches().items()),
        [svf.count_read(), svf.count_write(), svf.bytes_read(), svf.bytes_write()],
        [svf.blocks_erased(), svf.bytes_erased(), svf.blocks_punted(), svf.bytes_punted()],
    ]
    return json.loads(json.dumps([result, state]))


def run(module: Any, seed: int) -> dict[str, Any]:
    """Random calls to one file, with their answers."""
    rng = random.Random(seed)
    compare = rng.random() < 0.8
    svf = module.cSVF("x", 1.5, False, compare)
    done = []
    for _ in range(CALLS):
        call = calls(rng, compare, svf.blocks())
        answered = answer(svf, call)
        blocks = svf.blocks()
        if not all(sum(one) < other[0] for one, other in itertools.pairwise(blocks)):
            break
        done.append([call, answered])
        if call[0] == "write" and answered[0] is not None:
            break
    return {"compare_for_diff": compare, "calls": done}


def main() -> None:
    import svfsc  # type: ignore[import-not-found]

    if sys.argv[1:2] != ["--against"]:
        for seed in range(RUNS):
            print(json.dumps(run(svfsc, seed), separators=(",", ":")))
        return
    import quarrier.compat.svfsc as ours

    runs = int(sys.argv[2])
    for seed in range(RUNS, RUNS + runs):
        theirs = run(svfsc, seed)
        svf = ours.cSVF("x", 1.5, False, theirs["compare_for_diff"])
        for call, expected in theirs["calls"]:
            if (given := answer(svf, call)) == expected:
                continue
            if call[0] == "write" and expected[0] is None and given[0][0] == "OSError":
                break  # A difference that svfsc does not detect.
            sys.exit(f"run {seed}: {call}\nsvfsc    {expected}\nquarrier {given}")
    print(f"{runs} runs agree")


if __name__ == "__main__":
    main()
