"""A second client, written from the pages client.md (with note 29), wire.md and hashing.md alone, and no code of ours.

It is slow and plain: one report at a time, integers and fractions. ``form`` computes the client's form from a
collection, ``check`` refuses forms that were changed, ``report`` makes a message from a form, a value and random words.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import math
import re
import unicodedata
import zoneinfo
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

WORD = 1 << 64
FLOATS = ("epsilon", "epsilon_inf", "theta", "larger_share", "priors", "missing_rates")

Words = Callable[[], int]
"""Draws a word."""


# ---------------------------------------------------------------------- canonical JSON


def number_text(number: float) -> str:
    """A 64-bit float as the text that canonical JSON has; from its digits, not from Python's notation."""
    if number == 0:
        return "0.0"
    if number < 0:
        return "-" + number_text(-number)
    digits, exponent = next(  # the fewest digits that read as the same float
        (digits.replace(".", ""), int(exponent))
        for places in range(17)
        for digits, exponent in [f"{number:.{places}e}".split("e")]
        if float(f"{digits}e{exponent}") == number
    )
    digits = digits.rstrip("0") or "0"
    if number < 0.0001:
        return digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e-{-exponent:02d}"
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    digits = digits.ljust(exponent + 2, "0")
    return digits[: exponent + 1] + "." + digits[exponent + 1 :]


def quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return '"' + "".join(escapes.get(c) or (c if c >= " " else f"\\u{ord(c):04x}") for c in text) + '"'


def json_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return quoted(number_text(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return "{" + ",".join(f"{quoted(key)}:{json_text(value[key])}" for key in sorted(value)) + "}"


def normal(value: Any) -> Any:
    """Texts in NFC."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    return [normal(item) for item in value] if isinstance(value, list) else value


def floats(value: Any) -> Any:
    if isinstance(value, list):
        return [floats(item) for item in value]
    return value if isinstance(value, str) else float(value)


def alphabet_of(spec: dict[str, Any]) -> dict[str, Any]:
    """The alphabet with all its defaults, as it is hashed."""
    given = {key: normal(value) for key, value in spec["alphabet"].items()}
    if given["id"] == "ordered":
        kept = {"others": given.get("others", []), "unit": given.get("unit", "")}
        edges, declared = edges_of(given), given.get("sensitive")
        places = None if declared is None else sensitive_places(edges, kept["others"], declared)
        kept |= {} if places is None or len(places) == len(edges) - 1 + len(kept["others"]) else {"sensitive": places}
        return {"id": "ordered", "edges": edges} | kept
    defaults = {
        "closed": {"sensitive": None},
        "tagged": {"sensitive": []},
        "hashed": {"num_hashes": 1, "seed": 0},
        "permuted": {"seed": 0},
        "prefixes": {"seed": 0},
        "blocks": {},
    }[given["id"]]
    if given["id"] == "blocks":
        return blocks_of(given)
    alphabet = defaults | {key: value for key, value in given.items() if value is not None}
    alphabet.pop("background", None)
    if given["id"] == "permuted" and alphabet.get("num_hashes") == 1:
        del alphabet["num_hashes"]
    return alphabet


def blocks_of(given: dict[str, Any]) -> dict[str, Any]:
    """Blocks as a list of pairs in the order of their names; or a list of names, and the alphabet of their members."""
    if given.get("members") is not None:
        members = alphabet_of({"alphabet": given["members"]})
        return {"id": "blocks", "blocks": given["blocks"], "members": members}
    pairs = given["blocks"].items() if isinstance(given["blocks"], dict) else given["blocks"]
    blocks = sorted([normal(name), normal(values)] for name, values in pairs)
    return {"id": "blocks", "blocks": blocks, "sensitive": given.get("sensitive")}


def sensitive_places(edges: list[float], others: list[str], declared: list[Any]) -> list[int]:
    """Bins that hold a number of a range, the ends without limit; and others that are declared; or they are given."""
    if all(isinstance(entry, int) for entry in declared):
        return declared
    ranges = [
        [-math.inf if low is None else low, math.inf if high is None else high]
        for low, high in (entry for entry in declared if isinstance(entry, list))
    ]
    ends = [-math.inf, *edges[1:-1], math.inf]
    bins = [i for i in range(len(ends) - 1) if any(max(low, ends[i]) < min(high, ends[i + 1]) for low, high in ranges)]
    return bins + [len(edges) - 1 + i for i, text in enumerate(others) if text in declared]


def edges_of(given: dict[str, Any]) -> list[float]:
    """The edges of bins; in 60 digits, by another way than logarithms where they have equal ratios."""
    if given.get("edges") is not None:
        return list(map(float, given["edges"]))
    low, high, number = Fraction(repr(given["low"])), Fraction(repr(given["high"])), given.get("num_bins") or 32
    if given.get("scale") != "log":
        return [float(low + (high - low) * i / number) for i in range(number + 1)]
    inner = []
    for i in range(1, number):
        # edge**number = low**(number - i) high**i: the integer part of the root of a number with many digits
        power, scale = low ** (number - i) * high**i, 10**30
        root, step = 0, 1 << 200
        while step:
            if Fraction(root + step, scale) ** number <= power:
                root += step
            step //= 2
        inner.append(float(half_even_digits(Fraction(root), 4) / scale))
    return [float(low), *inner, float(high)]


def fields_of(spec: dict[str, Any]) -> dict[str, Any]:
    """The fields of the mechanism that were given."""
    defaults = {"clients": "own"} if "matrix" in spec["mechanism"] else {}
    fields = defaults | {key: value for key, value in spec["mechanism"].items() if value is not None}
    if fields.get("inversion") == "aware":
        del fields["inversion"]
    if "levels" in fields:
        of_levels = [level | {"epsilon": float(level["epsilon"])} for level in fields["levels"]]
        of_levels = [level | ({"values": normal(level["values"])} if "values" in level else {}) for level in of_levels]
        fields = {"of": "uss"} | fields | {"levels": of_levels}
    return {key: floats(value) if key in FLOATS else value for key, value in fields.items()}


# ---------------------------------------------------------------------- weights


def power_of_e(epsilon: float) -> Fraction:
    """E, by the series of the exponential function in integers: 120 digits, cut to 80, then a little less."""
    scale, x = 10**120, Fraction(epsilon)
    term = total = scale
    step = 0
    while term:
        step += 1
        term = term * x.numerator // (x.denominator * step)
        total += term
    return half_even_digits(Fraction(total, scale), 80) * (1 - Fraction(1, 10**70))


def half_even_digits(x: Fraction, digits: int) -> Fraction:
    """A number from 1 on, rounded to so many significant digits."""
    unit = Fraction(10) ** (len(str(math.floor(x))) - digits)
    return round(x / unit) * unit


def ceil(x: Fraction) -> int:
    return -((-x.numerator) // x.denominator)


def keep_weight(e: Fraction, rate: Fraction) -> int:
    gain = (e - 1) * rate
    return math.floor(WORD * gain / (1 + gain))


def first_epsilon(fields: dict[str, Any]) -> float:
    """The budget of the first coin."""
    return fields.get("epsilon_inf", fields["epsilon"])


def with_memo(sampler: dict[str, Any], rate: Fraction | None, fields: dict[str, Any], v: int) -> dict[str, Any]:
    """The sampler of reports, which repeat a memo that is drawn with this one, if the mechanism has memos."""
    if rate is None or "epsilon_inf" not in fields:
        return sampler
    if "larger_weight" in sampler:
        d, noise, own = sampler["subset_size"], int(sampler["larger_weight"]), int(sampler["larger_own_weight"])
        rate = min(Fraction(d * (WORD - noise), v * (WORD - own)), Fraction((d + 1) * noise, v * own))
    gain = (power_of_e(fields["epsilon"]) - 1) * rate
    share = gain / (1 + gain) * WORD / int(sampler["keep_weight"])
    if sampler["sampler"] == "symbol":
        noise = max(1, ceil(WORD * (1 - share) / v))
        return {"sampler": "memo", "repeat_weight": str(WORD - v * noise), "memo": sampler, "noise_weight": str(noise)}
    return {"sampler": "memo", "repeat_weight": str(min(math.floor(WORD * share), WORD - 1)), "memo": sampler}


def shares(priors: list[list[float]]) -> list[list[Fraction]]:
    rows = [[Fraction(share) for share in row] for row in priors]
    return [[share / sum(row) for share in row] for row in rows]


def excesses(priors: list[list[float]], e: Fraction) -> list[list[Fraction]]:
    rows = shares(priors)
    return [[max(a - e * b, Fraction(0)) for a, b in zip(s, t)] for s in rows for t in rows if s is not t]


def symbol_sampler(fields: dict[str, Any], k: int, v: int, h: int) -> tuple[dict[str, Any], Fraction]:
    e = power_of_e(first_epsilon(fields))
    noise = ceil(WORD / (v - 1 + e))
    if "priors" in fields:
        w = max(map(max, excesses(fields["priors"], e)))
        noise = max(1, ceil(WORD * w / (e - 1 + k * w)))
    weights = {"keep_weight": str(WORD - v * noise), "noise_weight": str(noise)}
    return {"sampler": "symbol"} | weights, Fraction(1, v)


def root(square: Fraction) -> Fraction:
    """Rounded down to a multiple of 2**-200."""
    return Fraction(math.isqrt(math.floor(square * (1 << 400))), 1 << 200)


def bits_sampler(fields: dict[str, Any], k: int, v: int, h: int) -> tuple[dict[str, Any], Fraction]:
    epsilon, theta, marginal = fields["epsilon"], fields.get("theta"), fields.get("inversion") == "marginal"
    t = epsilon / h
    if h * Fraction(t) > Fraction(epsilon):
        t = math.nextafter(t, 0)
    e, whole = power_of_e(t), power_of_e(epsilon)
    if theta is None:
        psi = 1 / (1 + power_of_e(t / 2))
    elif theta == "optimal":
        square = (v + whole - 1) / v if marginal else whole * (v + whole - 1) / (v + (v - 1) * (whole - 1))
        psi = root(square) / (e + root(square))
    else:
        psi = Fraction(theta) / ((1 - Fraction(theta)) * e + Fraction(theta))
    numerator = min(max(round((1 << 32) * psi), 1), (1 << 32) - 1)
    first = power_of_e(fields["epsilon_inf"]) if "epsilon_inf" in fields else e
    keep = keep_weight(first, Fraction(numerator, 1 << 32))
    if "priors" in fields:
        w = max(map(sum, excesses(fields["priors"], whole)))
        numerator = max(1, ceil((1 << 32) * w / (whole - 1 + 2 * w)))
        p = Fraction(numerator, 1 << 32)
        keep = math.floor(WORD * (Fraction(1, 2) - p) / (1 - p)) if w else WORD - 1
    weights = {"keep_weight": str(keep), "noise_numerator": str(numerator), "noise_in_clear": marginal}
    return {"sampler": "bits"} | weights, Fraction(numerator, 1 << 32)


def subset_sampler(fields: dict[str, Any], k: int, v: int, h: int) -> tuple[dict[str, Any], Fraction]:
    f = math.exp(fields["epsilon"])
    low = min(max(math.floor(v / (f + 1)), 1), max(1, v - 1))
    best = min((low, min(low + 1, max(1, v - 1))), key=lambda d: (d * f + v - d) ** 2 / (d * max(v - d, 1)))
    d = fields.get("subset_size", best)
    e = power_of_e(first_epsilon(fields))
    if fields.get("larger_share") is None:
        keep = keep_weight(e, Fraction(d, v))
        return {"sampler": "subset", "keep_weight": str(keep), "subset_size": d}, Fraction(d, v)
    noise = math.floor(WORD * Fraction(fields["larger_share"]))
    own = (d + 1) * noise * WORD // (d * WORD + noise)
    ratios = (Fraction(WORD - own, WORD - noise) / d, Fraction(own, noise) / (d + 1))
    sizes = {"subset_size": d, "larger_weight": str(noise), "larger_own_weight": str(own)}
    keep = keep_weight(e, 1 / (v * max(ratios)))
    return {"sampler": "subset", "keep_weight": str(keep)} | sizes, Fraction(d * WORD + noise, v * WORD)


def column_sampler(fields: dict[str, Any], k: int, v: int, h: int) -> tuple[dict[str, Any], Fraction]:
    half = 1
    while half < v:
        half *= 2
    keep = keep_weight(power_of_e(first_epsilon(fields)), Fraction(1, 2))
    return {"sampler": "column", "keep_weight": str(keep), "half": half}, Fraction(1, 2)


def stages_sampler(fields: dict[str, Any], k: int, v: int, h: int) -> tuple[dict[str, Any], None]:
    e, d = power_of_e(fields["epsilon"]), k - 1
    r, q = (Fraction(extreme(fields["missing_rates"])) for extreme in (max, min))
    if r * (1 - r) < q * (1 - q):
        r, q = 1 - q, 1 - r
    x = max(r - q * e, Fraction(0))
    p2 = (e - 1 + x) / (e - 1 + (d + 1) * x)
    q2 = (1 - p2) / d
    p1 = (e * (p2 + d * q2 - 2 * q2) - q2 * (d - 1)) / ((d - 1 + e) * (p2 - q2))
    q1 = (1 - p1) / (d - 1)
    own = ceil(WORD * (q1 * p2 + (1 - q1) * q2))
    return {"sampler": "two_stages", "noise_weight": str(ceil(WORD * q2)), "answer_noise_weight": str(own)}, None


def table_sampler(fields: dict[str, Any], k: int, v: int, h: int) -> tuple[dict[str, Any], None]:
    columns = []
    for column in zip(*fields["matrix"]):
        exact = [Fraction(entry) if isinstance(entry, str) else Fraction(entry, WORD) for entry in column]
        weights = [math.floor(WORD * share) for share in exact]
        weights[exact.index(max(exact))] += WORD - sum(weights)
        columns.append(list(map(str, weights)))
    return {"sampler": "table", "weights": columns}, None


def wave_sampler(fields: dict[str, Any], k: int, v: int, h: int) -> tuple[dict[str, Any], None]:
    others, epsilon = fields["num_others"], fields["epsilon"]
    f, bins = math.exp(epsilon), v - others
    best = (epsilon * f - math.expm1(epsilon)) / (2 * f * (math.expm1(epsilon) - epsilon))
    b = fields.get("half_width") or max(1, round(bins * best))
    w = 2 * b + 1
    far = bins + 2 * b - w + w * others
    noise = ceil(WORD / (w * power_of_e(epsilon) + far)) + w
    weights = {"near_weight": str((WORD - far * noise) // w), "noise_weight": str(noise)}
    return {"sampler": "wave", "half_width": b, "num_others": others} | weights, None


def levels_sampler(fields: dict[str, Any], k: int, v: int, h: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """With ``symbols`` of the levels; without them, in the order of the values, behind a first level without list."""
    values = [level.get("values") for level in fields["levels"]]
    first = 0 if values[0] else v - sum(len(texts) for texts in values[1:])
    ends = [first, *(len(texts or []) for texts in values)]
    ends = [sum(ends[: i + 1]) for i in range(len(ends))]
    symbols = fields.get("symbols") or [list(range(low, high)) for low, high in itertools.pairwise(ends)]
    symbols = [symbols[0] or list(range(first)), *symbols[1:]]
    ways = {"urr": symbol_sampler, "uss": subset_sampler, "urap": bits_sampler}
    sizes = best_sizes(list(map(len, symbols)), [level["epsilon"] for level in fields["levels"]], k > v)
    levels = []
    epsilon = number_text(float(fields["levels"][-1]["epsilon"]))
    for own, level, size in zip(symbols, fields["levels"], sizes):
        inner = {"epsilon": float(level["epsilon"])} | (
            {"subset_size": size} if fields.get("of", "uss") == "uss" else {}
        )
        sampler, _ = ways[fields.get("of", "uss")](inner, len(own) + 1, len(own), 1)
        levels.append({"symbols": own} | sampler)
    return {"sampler": "nested", "members": levels}, {"epsilon": epsilon, "num_sensitive": sum(map(len, symbols))}


def best_sizes(numbers: list[int], epsilons: list[float], sends_clear: bool) -> list[int]:
    """From the last level to the first: sizes with the least sum of variances."""
    later, sizes = float(sends_clear), []
    for number, epsilon in list(zip(numbers, epsilons))[::-1]:
        found = []
        for d in range(1, max(number, 2)):
            gain, phi, eta = math.expm1(epsilon), d / number, (d - 1) / max(number - 1, 1)
            kappa, miss = gain * phi / (1 + gain * phi), phi * (1 + gain * eta) / (1 + gain * phi)
            found.append((number * miss * (1 - miss) / (kappa * (1 - eta)) ** 2 + later / kappa, d))
        later, size = min(found)
        sizes.insert(0, size)
    return sizes


WAYS = {
    "nested": levels_sampler,
    "symbol": symbol_sampler,
    "bits": bits_sampler,
    "subset": subset_sampler,
    "column": column_sampler,
    "two_stages": stages_sampler,
    "table": table_sampler,
    "wave": wave_sampler,
}


def mechanisms_of_the_page() -> tuple[dict[str, Any], set[str]]:
    """How each mechanism draws, and which protect all symbols: the table of docs/client.md."""
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    table = page.partition("| `sampler` | mechanisms |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[re.findall(r"`(.+?)`", cell) for cell in line.strip("|").split(" | ")] for line in table]
    ways = {mechanism: WAYS[sampler] for [sampler], mechanisms, _ in rows for mechanism in mechanisms}
    return ways, {mechanism for _, _, protecting in rows for mechanism in protecting}


SAMPLERS, PROTECT_ALL = mechanisms_of_the_page()


def weights_of(sampler: dict[str, Any], rate: Any) -> dict[str, Any]:
    """What canonical JSON has of them."""
    if sampler["sampler"] == "nested":
        return {"members": sampler["members"]} | rate
    if rate is None:
        if sampler["sampler"] == "table":
            return {"weights": sampler["weights"]}
        if sampler["sampler"] == "wave":
            weights = {name: int(sampler[name]) for name in ("near_weight", "noise_weight")}
            return {"half_width": sampler["half_width"]} | weights
        return {name: int(sampler[name]) for name in ("noise_weight", "answer_noise_weight")}
    if sampler["sampler"] == "memo":
        return weights_of(sampler["memo"], rate) | {"repeat_weight": int(sampler["repeat_weight"])}
    return {"keep_weight": int(sampler["keep_weight"]), "noise_rate": fraction_text(rate)}


def fraction_text(rate: Fraction) -> str:
    return f"{rate.numerator}/{rate.denominator}" if rate.denominator > 1 else str(rate.numerator)


def payload_layout(sampler: dict[str, Any], k: int, v: int) -> dict[str, Any]:
    sampler = sampler.get("memo", sampler)
    levels = sampler.get("members", [])
    sizes = [len(level["symbols"]) for level in levels] or [v]
    if {sampler["sampler"], *(level["sampler"] for level in levels)} & {"bits", "subset"}:
        bits, clear = -(-max(sizes) // 8), 0
        while (len(sizes) - 1 + k - v) >> 8 * clear:
            clear += 1
        return {"layout": "bits", "bytes": bits + clear, "bit_bytes": bits, "clear_bytes": clear}
    outputs = 2 * sampler["half"] + k - v if sampler["sampler"] == "column" else k
    outputs = len(sampler["weights"][0]) if sampler["sampler"] == "table" else outputs
    outputs += 2 * sampler["half_width"] if sampler["sampler"] == "wave" else 0
    size = 1 if outputs <= 256 else 2 if outputs <= 65536 else 4
    return {"layout": "integer", "bytes": size, "num_outputs": outputs}


def block_layout(sampler: dict[str, Any]) -> dict[str, Any]:
    own = 1 if len(sampler["part_of"]) <= 256 else 2
    longest = max(part["payload"]["bytes"] for part in sampler["parts"])
    return {"layout": "block", "bytes": own + longest, "block_bytes": own}


# ---------------------------------------------------------------------- the client's form


def permutation_of(alphabet: dict[str, Any], k: int, seed: str) -> tuple[dict[str, Any], int, int]:
    """The rule, K and v of a permuted alphabet."""
    sensitive = alphabet.get("sensitive", alphabet["values"])
    listed = [value for value in alphabet["values"] if value not in sensitive]
    rule = {"rule": "permutation", "num_buckets": k, "seed": seed}
    rule["values"] = [value for value in alphabet["values"] if value in sensitive]
    rule |= {"num_hashes": alphabet["num_hashes"]} if alphabet.get("num_hashes", 1) > 1 else {}
    return rule | ({"listed": listed} if listed else {}), k + len(listed), k


def rule_of(alphabet: dict[str, Any]) -> tuple[dict[str, Any], int, int]:
    """From values to symbols, K and v."""
    if alphabet["id"] in ("closed", "tagged"):
        first = [*(alphabet["sensitive"] or []), *alphabet.get("tags", [])]
        symbols = [*first, *(value for value in alphabet["values"] if value not in first)]
        v = len(symbols) if alphabet["sensitive"] is None else len(first)
        return {"rule": "list", "symbols": symbols}, len(symbols), v
    if alphabet["id"] == "ordered":
        k = len(alphabet["edges"]) - 1 + len(alphabet["others"])
        rule = {"rule": "bins", "edges": list(map(number_text, alphabet["edges"])), "others": alphabet["others"]}
        if "sensitive" not in alphabet:
            return rule, k, k
        return rule | {"sensitive": alphabet["sensitive"]}, k, len(alphabet["sensitive"])
    k, seed = alphabet["num_buckets"], str(alphabet["seed"])
    if alphabet["id"] == "permuted":
        return permutation_of(alphabet, k, seed)
    if alphabet["id"] == "prefixes":
        listed = alphabet.get("non_sensitive", [])
        rule = {"rule": "prefixes", "num_buckets": k, "seed": seed, "tokens": alphabet["tokens"]}
        return rule | {"lengths": alphabet["lengths"], "listed": listed}, k + len(listed), k
    listed, clear = alphabet.get("non_sensitive", []), alphabet.get("num_clear_buckets")
    rule = {"rule": "hash", "num_buckets": k, "seed": seed, "num_hashes": alphabet["num_hashes"]}
    return rule | {"listed": listed, "num_clear_buckets": clear}, k + (clear or len(listed)), k


def rule_of_blocks(alphabet: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """From values to symbols; and K and v of each block."""
    if "members" in alphabet:
        members, blocks = alphabet["members"], alphabet["blocks"]
        values, clear = members.get("non_sensitive", []), members.get("num_clear_buckets")
        listed = [[value for value in values if value.partition("/")[0] == block] for block in blocks]
        rule = {"rule": "hash_within_blocks", "blocks": blocks, "listed": listed, "num_clear_buckets": clear}
        k = members["num_buckets"]
        rule |= {"num_buckets": k, "seed": str(members["seed"]), "num_hashes": members["num_hashes"]}
        return rule, [(k + clear_symbols(own, clear), k) for own in listed]
    everything = [value for _, values in alphabet["blocks"] for value in values]
    protected = set(everything if alphabet["sensitive"] is None else alphabet["sensitive"])
    sizes = [(len(values), len(protected & set(values))) for _, values in alphabet["blocks"]]
    return {"rule": "list", "symbols": sorted(everything, key=lambda value: value not in protected)}, sizes


def clear_symbols(listed: list[str], num_clear_buckets: int | None) -> int:
    """Of a block with these listed values."""
    return 0 if not listed else num_clear_buckets or len(listed)


def within_blocks(
    fields: dict[str, Any], sizes: list[tuple[int, int]], h: int
) -> tuple[dict[str, Any], list[Any], int]:
    """The sampler, what canonical JSON has of its weights, and the number of protected symbols."""
    different, parts, weights, protected = list(dict.fromkeys(sizes)), [], [], 0
    for k, own in different:
        v = k if fields["id"] in PROTECT_ALL else own
        sampler, rate = ({"sampler": "in_clear"}, None) if not own else SAMPLERS[fields["id"]](fields, k, v, h)
        layout = payload_layout(sampler, k, v)
        parts.append({"num_first": own, "num_symbols": k, "num_sensitive": v, "sampler": sampler, "payload": layout})
        weights.append(weights_of(sampler, rate) if own else {})
        protected += v * sizes.count((k, own))
    part_of = [different.index(size) for size in sizes]
    return {"sampler": "within_blocks", "part_of": part_of, "parts": parts}, weights, protected


def form(spec: dict[str, Any]) -> dict[str, Any]:
    """The client's form of a collection, as ``uldp export`` writes it, without its examples."""
    alphabet, fields = alphabet_of(spec), fields_of(spec)
    if alphabet["id"] == "blocks":
        rule, sizes = rule_of_blocks(alphabet)
        sampler, parts, v = within_blocks(fields, sizes, rule.get("num_hashes", 1))
        k, weights, layout = sum(size for size, _ in sizes), {"parts": parts}, block_layout(sampler)
    else:
        rule, k, v = rule_of(alphabet)
        v = k if fields["id"] in PROTECT_ALL else v
        with_others = fields | {"num_others": num_others(alphabet)}
        if "levels" in fields:
            with_others["symbols"] = symbols_of_levels(rule, fields["levels"])
            v = max(v, *(symbol + 1 for symbols in with_others["symbols"] for symbol in symbols))
        sampler, rate = SAMPLERS[fields["id"]](with_others, k, v, alphabet.get("num_hashes", 1))
        sampler = with_memo(sampler, rate, fields, v)
        weights, layout = weights_of(sampler, rate), payload_layout(sampler, k, v)
    num_cohorts = spec.get("num_cohorts", 1)
    meaning = {"id": spec["id"], "version": spec["version"], "num_cohorts": num_cohorts, "wire_version": 1}
    asked = {key: spec[key] for key in ("client_window", "client_timezone") if spec.get(key) is not None}
    meaning |= asked
    listed = [
        {"name": one["name"], "values": normal(one["values"])}
        | ({"set_by": one["set_by"]} if one.get("set_by", "client") != "client" else {})
        for one in spec.get("dimensions") or []
    ]
    of_groups = {"dimensions": listed} if listed else {}
    meaning |= of_groups
    canonical = json_text(meaning | {"alphabet": alphabet, "mechanism": fields | weights})
    return (
        {
            "client_form": 1,
            "id": spec["id"],
            "version": spec["version"],
            "fingerprint": hashlib.sha256(canonical.encode()).hexdigest(),
            "num_cohorts": num_cohorts,
            "num_symbols": k,
            "num_sensitive": v,
            "symbols": rule,
            "sampler": sampler,
            "payload": layout,
            "canonical": canonical,
        }
        | ({"client_window": asked_window(**asked)} if asked else {})
        | of_groups
    )


def symbols_of_levels(rule: dict[str, Any], levels: list[dict[str, Any]]) -> list[list[int]]:
    """A first level without a list is left empty."""
    if rule["rule"] == "list":
        return [list(map(rule["symbols"].index, level.get("values", []))) for level in levels]
    k = rule["num_buckets"]
    return [[k + rule["listed"].index(value) for value in level.get("values", [])] for level in levels]


def num_others(alphabet: dict[str, Any]) -> int:
    """Sensitive symbols without a place in the order."""
    others = alphabet.get("others", [])
    if "sensitive" not in alphabet or alphabet["id"] != "ordered":
        return len(others)
    return len(
        set(alphabet["sensitive"]) & set(range(len(alphabet["edges"]) - 1, len(alphabet["edges"]) - 1 + len(others)))
    )


def asked_window(client_window: str, client_timezone: str | None = None) -> dict[str, Any]:
    """The windows in which a client answers at most once."""
    minutes = {"m": 1, "h": 60, "d": 24 * 60, "w": 7 * 24 * 60}[client_window[-1]] * int(client_window[:-1])
    return {"milliseconds": 60_000 * minutes, "timezone": client_timezone}


def window_of(window: dict[str, Any], event_time: int) -> tuple[int, int]:
    """Start and end of the window of an event; of days of a place by trying each minute."""
    length, zone = window["milliseconds"], window["timezone"]
    if zone is None:
        start = event_time - event_time % length
        return start, start + length

    def number(minute: int) -> int:
        local = datetime.datetime.fromtimestamp(60 * minute, zoneinfo.ZoneInfo(zone))
        return (local.date() - datetime.date(1970, 1, 5)).days // (length // 86_400_000)

    first = last = event_time // 60_000
    while number(first - 1) == number(event_time // 60_000):
        first -= 1
    while number(last) == number(event_time // 60_000):
        last += 1
    return 60_000 * first, 60_000 * last


def form_fingerprint(form: dict[str, Any]) -> str:
    return hashlib.sha256(json_text(form).encode()).hexdigest()


def check(form: Any, pinned: str | None = None) -> None:
    """Raises ValueError for a form that must not be used; ``pinned``: the form_fingerprint that it must have."""
    if pinned is not None and form_fingerprint(form) != pinned:
        raise ValueError("the form is not the one that was pinned")
    try:
        follows, examples = form_of(form["canonical"]), form["examples"]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError):
        raise ValueError("the form has no shape") from None
    if json_text(follows | {"examples": examples}) != json_text(form):
        raise ValueError("the form does not follow from its canonical text")
    if not isinstance(examples, list) or not examples:
        raise ValueError("there must be examples")
    for example in examples:
        if not isinstance(example, dict) or set(example) != {"value", "cohort", "symbols"}:
            raise ValueError("an example has no shape")
        if example["cohort"] not in range(follows["num_cohorts"]):
            raise ValueError("an example has no cohort")
        try:
            found = symbols_of(follows, example["value"], example["cohort"])
        except (ValueError, TypeError):
            raise ValueError("an example has no such value") from None
        if json_text(found) != json_text(example["symbols"]):
            raise ValueError("an example has other symbols")


def form_of(canonical: str) -> dict[str, Any]:
    """The form, computed again from the text that is hashed; ValueError if that is not canonical."""
    spec = json.loads(canonical)
    weights = {"parts", "keep_weight", "noise_rate", "repeat_weight", "noise_weight"}
    weights |= {"answer_noise_weight", "near_weight"}
    given = {key: value for key, value in spec["mechanism"].items() if key not in weights}
    fields = {key: numbers(value) if key in FLOATS and value != "optimal" else value for key, value in given.items()}
    found = form({key: value for key, value in spec.items() if key != "wire_version"} | {"mechanism": fields})
    if found["canonical"] != canonical:
        raise ValueError("the text is not canonical, or has other weights than those that follow from epsilon")
    return found


def numbers(value: Any) -> Any:
    return list(map(numbers, value)) if isinstance(value, list) else float(value)


# ---------------------------------------------------------------------- values and symbols


def hash_word(value: str, seed: int, index: int) -> int:
    text = b"uldp-hash-1\0" + seed.to_bytes(8, "little") + unicodedata.normalize("NFC", value).encode()
    return int.from_bytes(hashlib.shake_128(text).digest(8 * index + 8)[8 * index :], "little")


def token_numbers(tokens: list[str], value: str) -> list[int]:
    """From the left, always the longest token that fits; 0 at the end."""
    numbers = []
    while value:
        fitting = [token for token in tokens if value.startswith(token)]
        longest = max(fitting, key=len, default=value[0])
        numbers.append(tokens.index(longest) + 1 if fitting else len(tokens) + 1 + ord(longest))
        value = value[len(longest) :]
    return [*numbers, 0]


def prefix_bucket(rule: dict[str, Any], value: str, cohort: int) -> int:
    total = 0
    length = rule["lengths"][cohort % len(rule["lengths"])]
    for position, number in enumerate(token_numbers(rule["tokens"], value)[:length]):
        text = b"uldp-prefix-1\0" + int(rule["seed"]).to_bytes(8, "little")
        text += position.to_bytes(4, "little") + number.to_bytes(4, "little")
        stream = hashlib.shake_128(text).digest(2 * cohort + 2)
        total += int.from_bytes(stream[2 * cohort :], "little")
    return total % (1 << 16) * rule["num_buckets"] >> 16


def bin_of(rule: dict[str, Any], value: str) -> int:
    """How many inner edges are at most as large; or the place of another text behind the bins."""
    if value in rule["others"]:
        place: int = rule["others"].index(value)
        return len(rule["edges"]) - 1 + place
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", value):
        raise ValueError("a value must be a number")
    return sum(float(edge) <= float(value) for edge in rule["edges"][1:-1])


def permuted(rule: dict[str, Any], value: str, cohort: int) -> list[int]:
    """Ranks among the values by h words; or the place of a listed value behind the buckets."""
    k, seed, h = rule["num_buckets"], int(rule["seed"]), rule.get("num_hashes", 1)
    if value in rule.get("listed", []):
        return [k + rule["listed"].index(value)]
    numbers = range(cohort * h, cohort * h + h)
    orders = [sorted(rule["values"], key=lambda other, c=c: hash_word(other, seed, c)) for c in numbers]  # stable
    return [order.index(value) % k for order in orders]


def symbols_of(form: dict[str, Any], value: str, cohort: int) -> list[int]:
    """The symbols of a value in a cohort; ValueError for one that is not in the list."""
    rule, value = form["symbols"], unicodedata.normalize("NFC", value)
    if rule["rule"] == "list":
        return [rule["symbols"].index(value)]
    if rule["rule"] == "bins":
        order = [*rule.get("sensitive", []), *range(form["num_symbols"])]  # the first time that a place is listed
        return [list(dict.fromkeys(order)).index(bin_of(rule, value))]
    if rule["rule"] == "hash_within_blocks":
        return symbols_in_block(rule, value, cohort)
    return hashed_symbols(rule, value, cohort)


def hashed_symbols(rule: dict[str, Any], value: str, cohort: int) -> list[int]:
    k, seed = rule["num_buckets"], int(rule["seed"])
    if rule["rule"] == "permutation":
        return permuted(rule, value, cohort)
    if rule["rule"] == "prefixes":
        return [k + rule["listed"].index(value) if value in rule["listed"] else prefix_bucket(rule, value, cohort)]
    h, clear = rule["num_hashes"], rule["num_clear_buckets"]
    if value in rule["listed"]:
        place = hash_word(value, seed, cohort) * clear // WORD if clear else rule["listed"].index(value)
        return [k + place]
    return [hash_word(value, seed, cohort * h + j) * k // WORD for j in range(h)]


def symbols_in_block(rule: dict[str, Any], value: str, cohort: int) -> list[int]:
    """The buckets of all blocks come first, block by block, and then their listed values or clear buckets."""
    k, block = rule["num_buckets"], rule["blocks"].index(value.partition("/")[0])
    clear = [clear_symbols(own, rule["num_clear_buckets"]) for own in rule["listed"]]
    own = rule | {"rule": "hash", "listed": rule["listed"][block]}
    found = hashed_symbols(own, value, cohort)
    first = len(clear) * k + sum(clear[:block])
    return [block * k + x if x < k else first + x - k for x in found]


# ---------------------------------------------------------------------- symbols and payloads


def payload(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    """A payload for the symbols of a value."""
    by_name = {"symbol": _symbol, "bits": _bits, "subset": _subset, "column": _column, "two_stages": _two_stages}
    by_name |= {"table": _table, "wave": _wave, "nested": _levels}
    by_name |= {"within_blocks": _within_blocks, "in_clear": _in_clear}
    return by_name[form["sampler"]["sampler"]](form, symbols, draw)


def _integer(form: dict[str, Any], number: int) -> bytes:
    return number.to_bytes(form["payload"]["bytes"], "little")


def _bit_bytes(form: dict[str, Any], bits: int, clear: int) -> bytes:
    sizes = form["payload"]
    return bits.to_bytes(sizes["bit_bytes"], "little") + clear.to_bytes(sizes["clear_bytes"], "little")


def _symbol(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    keep, noise, word = int(form["sampler"]["keep_weight"]), int(form["sampler"]["noise_weight"]), draw()
    return _integer(form, symbols[0] if word < keep else (word - keep) // noise)


def _bits(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    sampler, v = form["sampler"], form["num_sensitive"]
    heads = [draw() < int(sampler["keep_weight"]) for _ in symbols]
    words = [0] * -(-v // 64)
    for digit in range(32):
        for i in range(len(words)):
            one = int(sampler["noise_numerator"]) >> digit & 1
            words[i] = words[i] | draw() if one else words[i] & draw()
    noise = sum(word << 64 * i for i, word in enumerate(words)) % (1 << v)
    if heads[0] and symbols[0] >= v:
        return _bit_bytes(form, noise if sampler["noise_in_clear"] else 0, symbols[0] - v + 1)
    coins = dict(zip(reversed(symbols), reversed(heads)))  # of equal symbols the first coin counts
    own = sum(1 << symbol for symbol, shows_heads in coins.items() if shows_heads)
    return _bit_bytes(form, noise | own, 0)


def _subset(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    sampler, v, (x,) = form["sampler"], form["num_sensitive"], symbols
    heads, size = draw() < int(sampler["keep_weight"]), sampler["subset_size"]
    if "larger_weight" in sampler:
        size += draw() < int(sampler["larger_own_weight" if heads and x < v else "larger_weight"])
    chosen: list[int] = []
    while len(chosen) != size:
        words = [draw() for _ in range(v)]
        if heads and x < v:
            words[x] = 0
        limit = sorted(words)[size - 1]
        chosen = [symbol for symbol in range(v) if words[symbol] <= limit]
    if heads and x >= v:
        return _bit_bytes(form, 0, x - v + 1)
    return _bit_bytes(form, sum(1 << symbol for symbol in chosen), 0)


def _column(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    sampler, v, (x,) = form["sampler"], form["num_sensitive"], symbols
    heads, half = draw() < int(sampler["keep_weight"]), sampler["half"]
    y = draw() % (2 * half)
    if heads and x >= v:
        return _integer(form, 2 * half + x - v)
    if heads and bin((half + x) & y).count("1") % 2:
        y ^= half
    return _integer(form, y)


def _two_stages(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    a, b = int(form["sampler"]["noise_weight"]), int(form["sampler"]["answer_noise_weight"])
    d, (x,), word = form["num_symbols"] - 1, symbols, draw()
    if x == d:
        return _integer(form, word // a if word < d * a else d)
    if word < (d - 1) * b:
        return _integer(form, (x + 1 + word // b) % d)
    return _integer(form, d if word < (d - 1) * b + a else x)


def _in_clear(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    return _integer(form, symbols[0])


def _within_blocks(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    """By a list of the symbols of all blocks."""
    parts = [form["sampler"]["parts"][number] for number in form["sampler"]["part_of"]]
    order = [(block, x) for block, part in enumerate(parts) for x in range(part["num_first"])]
    order += [(block, x) for block, part in enumerate(parts) for x in range(part["num_first"], part["num_symbols"])]
    block = order[symbols[0]][0]
    own = payload(parts[block], [order[symbol][1] for symbol in symbols], draw)
    head = block.to_bytes(form["payload"]["block_bytes"], "little")
    return (head + own).ljust(form["payload"]["bytes"], b"\0")


def _table(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    word, output = draw(), 0
    weights = list(map(int, form["sampler"]["weights"][symbols[0]]))
    while word >= weights[output]:
        word -= weights[output]
        output += 1
    return _integer(form, output)


def _wave(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    """By a list of the outputs of all shares."""
    sampler, word = form["sampler"], draw()
    b, w = sampler["half_width"], 2 * sampler["half_width"] + 1
    line = form["num_sensitive"] - sampler["num_others"] + 2 * b
    outputs = [*range(line), *(line + other for other in range(sampler["num_others"]) for _ in range(w))]
    if symbols[0] >= form["num_sensitive"]:
        share = word // int(sampler["noise_weight"])
        return _integer(form, outputs[share] if share < len(outputs) else symbols[0] + 2 * b)
    first = outputs.index(symbols[0]) if symbols[0] + 2 * b < line else outputs.index(symbols[0] + 2 * b)
    near, far = outputs[first : first + w], outputs[:first] + outputs[first + w :]
    noise, own = int(sampler["noise_weight"]), int(sampler["near_weight"])
    if word < len(far) * noise:
        return _integer(form, far[word // noise])
    step = (word - len(far) * noise) // own
    return _integer(form, near[step] if step < w else near[b])


def _levels(form: dict[str, Any], symbols: list[int], draw: Words) -> bytes:
    """All levels draw; the first whose payload does not say "a later symbol" is sent."""
    (x,), levels, sizes = symbols, form["sampler"]["members"], form["payload"]
    own = next((i for i, level in enumerate(levels) if x in level["symbols"]), len(levels))
    numbers = []
    for i, level in enumerate(levels):
        v = len(level["symbols"])
        place = 0 if own < i else v if own > i else level["symbols"].index(x)
        inner = form | {"sampler": level, "num_sensitive": v, "payload": sizes | {"clear_bytes": 1}}
        numbers.append(int.from_bytes(payload(inner, [place], draw), "little"))
    for i, (level, number) in enumerate(zip(levels, numbers)):
        if sizes["layout"] == "integer" and number < len(level["symbols"]):
            return _integer(form, level["symbols"][number])
        if sizes["layout"] == "bits" and number < 256 ** sizes["bit_bytes"]:
            return _bit_bytes(form, number, i)
    later = len(levels) + x - form["num_sensitive"]
    return _integer(form, x) if sizes["layout"] == "integer" else _bit_bytes(form, 0, later)


# ---------------------------------------------------------------------- memos

COHORT, MEMO, TURN = 0, 1, 2


def keyed(form: dict[str, Any], secret: bytes, purpose: int, number: int) -> Words:
    """Words that follow from the secret of the device."""
    fingerprint = bytes.fromhex(form["fingerprint"])
    text = b"uldp-client-1\0" + secret + fingerprint + bytes([purpose]) + number.to_bytes(8, "little")
    output, drawn = hashlib.shake_256(text), 0

    def draw() -> int:
        nonlocal drawn
        drawn += 8
        return int.from_bytes(output.digest(drawn)[-8:], "little")

    return draw


def cohort_of(form: dict[str, Any], secret: bytes) -> int:
    return keyed(form, secret, COHORT, 0)() * form["num_cohorts"] // WORD


def turn_of(form: dict[str, Any], secret: bytes, every: int) -> int:
    """Which of ``every`` windows in a row has an answer."""
    return keyed(form, secret, TURN, every)() * every // WORD


def memo(form: dict[str, Any], secret: bytes, symbol: int) -> bytes:
    inner = form | {"sampler": form["sampler"]["memo"]}
    return payload(inner, [symbol], keyed(form, secret, MEMO, symbol))


def repeated(form: dict[str, Any], memo: bytes, draw: Words) -> bytes:
    """The payload of one report: the memo or noise."""
    sampler = form["sampler"]
    inner = form | {"sampler": sampler["memo"]}
    if "noise_weight" in sampler:
        word, repeat = draw(), int(sampler["repeat_weight"])
        return memo if word < repeat else _integer(form, (word - repeat) // int(sampler["noise_weight"]))
    repeats = draw() < int(sampler["repeat_weight"])
    tails = iter([WORD - 1])  # a coin that the sampler would toss
    noise = payload(inner, [0], lambda: next(tails, None) or draw())
    return memo if repeats else noise


def epsilon_of(weights: list[list[str]]) -> float:
    """Of a declared channel: infinite if an output rules a symbol out."""
    rows = [[int(weight) for weight in row] for row in zip(*weights)]
    return math.inf if any(min(row) == 0 for row in rows) else max(math.log(max(row) / min(row)) for row in rows)


def said(form: dict[str, Any], reports: int) -> float:
    """What so many reports of one symbol say together, at most: f."""
    if form["sampler"]["sampler"] != "memo":
        fields = json.loads(form["canonical"])["mechanism"]
        return reports * (float(fields["epsilon"]) if "epsilon" in fields else epsilon_of(form["sampler"]["weights"]))
    memo, repeat = form["sampler"]["memo"], int(form["sampler"]["repeat_weight"]) / WORD
    keep = int(memo["keep_weight"]) / WORD
    found = []
    for log_noise, factor in rarest(form, memo):
        a = math.log1p(repeat / (1 - repeat) * math.exp(-log_noise))
        u = log_noise + math.log1p(-keep) + reports * a + math.log(-math.expm1(-reports * a))
        found.append(math.log1p(keep / (1 - keep) * factor / (1 + math.exp(-u))))
    return max(found)


def rarest(form: dict[str, Any], memo: dict[str, Any]) -> list[tuple[float, float]]:
    """ln g, and b."""
    v, k = form["num_sensitive"], form["num_symbols"]
    if memo["sampler"] == "symbol":
        return [(-math.log(v), v)]
    if memo["sampler"] == "column":
        return [(-math.log(2 * memo["half"]), 2)]
    if memo["sampler"] == "bits":
        psi, m = int(memo["noise_numerator"]) / 2**32, v - 1 if v == k else v
        one, most = (ones * math.log(psi) + (v - ones) * math.log1p(-psi) for ones in (1, m))
        return [(min(one, most), 1 / psi)]
    larger, own = (int(memo.get(name, "0")) / WORD for name in ("larger_weight", "larger_own_weight"))
    sizes = [(memo["subset_size"], 1 - larger, 1 - own), (memo["subset_size"] + 1, larger, own)]
    return [(math.log(q / math.comb(v, s)), o * v / (q * s)) for s, q, o in sizes if q]


def cost(form: dict[str, Any], reports: int, symbols: int) -> float:
    """What so many reports cost of a person who has had at most so many symbols."""

    def h(t: int) -> float:
        return t * max(said(form, j) / j for j in range(t, min(reports, t + 50) + 1))

    each, more = divmod(reports, symbols)
    return ((symbols - more) * h(each) if each else 0.0) + (more * h(each + 1) if more else 0.0)


# ---------------------------------------------------------------------- reports and messages


def group_of(form: dict[str, Any], texts: dict[str, str]) -> int:
    """The number whose digits are the numbers of the texts, the first dimension being the most significant."""
    if set(texts) != {one["name"] for one in form.get("dimensions", []) if "set_by" not in one}:
        raise ValueError("each dimension must have a text")
    group = 0
    for one in form.get("dimensions", []):
        digits = [*one["values"], "other"]
        text = "other" if "set_by" in one else unicodedata.normalize("NFC", texts[one["name"]])
        group = group * len(digits) + digits.index(text if text in digits else "other")
    return group


def report(
    form: dict[str, Any], value: str, event_time: int, draw: Words, dimensions: dict[str, str] | None = None
) -> bytes:
    """The message of a report: cohort, payload and id drawn in this order; the group is in front of the cohort."""
    group = group_of(form, dimensions or {})
    cohort = draw() * form["num_cohorts"] // WORD
    drawn = payload(form, symbols_of(form, value, cohort), draw)
    report_id = draw().to_bytes(8, "little") + draw().to_bytes(8, "little")
    return b"".join(
        [
            b"\x02",
            bytes.fromhex(form["fingerprint"])[:8],
            report_id,
            integer(event_time),
            integer(group * form["num_cohorts"] + cohort),
            integer(len(drawn)),
            drawn,
        ]
    )


def integer(number: int) -> bytes:
    """Avro's variable-length integer."""
    rest = 2 * number if number >= 0 else -2 * number - 1
    out = []
    while rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    return bytes([*out, rest])


def read_integer(message: bytes, at: int) -> tuple[int, int]:
    """The integer and the position behind it."""
    rest = shift = 0
    while True:
        rest |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 128:
            return (rest // 2 if rest % 2 == 0 else -(rest + 1) // 2), at


def fields(message: bytes) -> Iterator[Any]:
    """Id, event time, cohort and payload of the message of a single report."""
    yield message[9:25]
    event_time, at = read_integer(message, 25)
    cohort, at = read_integer(message, at)
    size, at = read_integer(message, at)
    yield from (event_time, cohort, message[at : at + size])


def pack(messages: list[bytes]) -> bytes:
    """One message for those of single reports of one collection."""
    ids, times, cohorts, payloads = zip(*map(fields, messages))
    columns = (
        b"".join(cohort.to_bytes(2, "little") for cohort in cohorts),
        b"".join(time.to_bytes(8, "little", signed=True) for time in times),
        b"".join(ids),
        b"".join(payloads),
    )
    return b"\x04" + messages[0][1:9] + b"".join(integer(len(column)) + column for column in columns)
