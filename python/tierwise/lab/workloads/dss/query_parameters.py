"""Substitution parameters of the queries (TPC-H specification, clauses 2.4.1.3 to 2.4.22.3).

Each of the 22 queries has a rule, by which a seed and a stream draw its parameters, and validation values,
for which the specification prints the answers. The rules are the specification's; the random numbers are
ours, not qgen's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from random import Random

TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
"""A type of part is one word of each."""

CONTAINERS = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)
"""A container is one word of each."""

SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")

MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")

NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("INDIA", "INDONESIA", "JAPAN", "CHINA", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
"""By region."""

COUNTRY_CODES = range(10, 35)
"""Of telephone numbers: the nation's key and 10."""

REQUEST_WORDS = (
    ("special", "pending", "unusual", "express"),
    ("packages", "requests", "accounts", "deposits"),
)
"""In comments on orders."""

_COLORS = """
    almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished
    chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab
    firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki
    lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty
    moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red
    rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
    tomato turquoise violet wheat white yellow
"""

COLORS = _COLORS.split()
"""Five of these name a part."""


QUERIES = range(1, 23)

Parameters = dict[str, object]
"""Values by the names in braces in the query's template."""

_SPAN_MONTHS = {4: 3, 5: 12, 6: 12, 10: 3, 12: 12, 14: 1, 15: 3, 20: 12}
"""Length of the interval that begins at a query's date."""

_LAST_SHIPMENT = date(1998, 12, 1)


def draw_query_parameters(query: int, seed: int, stream: int, scale_factor: float) -> Parameters:
    """Parameters of a query, always the same for the same arguments.

    Args:
        query: 1 to 22.
        seed: of the whole run; 0 stands for the validation parameters.
        stream: 0 for the power sequence, from 1 for the streams of the throughput sequence.
        scale_factor: determines the fraction of query 11.
    """
    random = Random(f"dss seed {seed} stream {stream} query {query}")
    drawn = _RULES[query](random) if seed else _VALIDATION[query]
    return _with_derived(query, drawn, scale_factor)


def _with_derived(query: int, drawn: Mapping[str, object], scale_factor: float) -> Parameters:
    """Values derived from the parameters, as literals, so that no engine has to calculate with dates."""
    result = dict(drawn)
    match result:
        case {"delta": int(delta)}:
            result["date"] = _LAST_SHIPMENT - timedelta(days=delta)
        case {"date": date() as first} if query in _SPAN_MONTHS:
            result["end"] = _months_later(first, _SPAN_MONTHS[query])
    match result:
        case {"discount": int(discount)}:
            result |= {"discount_low": f"0.{discount - 1:02}", "discount_high": f"0.{discount + 1:02}"}
        case {"sizes": list(sizes)}:
            result["sizes"] = ", ".join(map(str, sizes))
        case {"codes": list(codes)}:
            result["codes"] = ", ".join(f"'{code}'" for code in codes)
        case {"nation": _} if query == 11:
            result["fraction"] = f"{0.0001 / scale_factor:.10f}"
        case {"quantity1": int(one), "quantity2": int(two), "quantity3": int(three)}:
            result |= {"quantity1_high": one + 10, "quantity2_high": two + 10, "quantity3_high": three + 10}
    return result


def _months_later(first: date, months: int) -> date:
    month = first.month - 1 + months
    return first.replace(year=first.year + month // 12, month=month % 12 + 1)


def _year(random: Random) -> date:
    return date(random.randint(1993, 1997), 1, 1)


def _month(random: Random, first: date, count: int) -> date:
    return _months_later(first, random.randrange(count))


def _nations() -> list[str]:
    return [nation for nations in NATIONS.values() for nation in nations]


def _region(random: Random) -> str:
    return random.choice(list(NATIONS))


def _type(random: Random, words: int) -> str:
    return " ".join(random.choice(choices) for choices in TYPES[:words])


def _brand(random: Random) -> str:
    return f"Brand#{random.randint(1, 5)}{random.randint(1, 5)}"


def _nation_and_region(random: Random) -> Parameters:
    nation = random.choice(_nations())
    region = next(region for region, nations in NATIONS.items() if nation in nations)
    return {"nation": nation, "region": region, "type": _type(random, 3)}


def _two(random: Random, name: str, choices: list[str]) -> Parameters:
    first, second = random.sample(choices, 2)
    return {f"{name}1": first, f"{name}2": second}


def _brands_and_quantities(random: Random) -> Parameters:
    bounds = {1: (1, 10), 2: (10, 20), 3: (20, 30)}
    drawn: Parameters = {}
    for number, (low, high) in bounds.items():
        drawn |= {f"brand{number}": _brand(random), f"quantity{number}": random.randint(low, high)}
    return drawn


_RULES: dict[int, Callable[[Random], Parameters]] = {
    1: lambda random: {"delta": random.randint(60, 120)},
    2: lambda random: {
        "size": random.randint(1, 50),
        "type": random.choice(TYPES[2]),
        "region": _region(random),
    },
    3: lambda random: {"segment": random.choice(SEGMENTS), "date": date(1995, 3, random.randint(1, 31))},
    4: lambda random: {"date": _month(random, date(1993, 1, 1), 58)},
    5: lambda random: {"region": _region(random), "date": _year(random)},
    6: lambda random: {
        "date": _year(random),
        "discount": random.randint(2, 9),
        "quantity": random.randint(24, 25),
    },
    7: lambda random: _two(random, "nation", _nations()),
    8: _nation_and_region,
    9: lambda random: {"color": random.choice(COLORS)},
    10: lambda random: {"date": _month(random, date(1993, 2, 1), 24)},
    11: lambda random: {"nation": random.choice(_nations())},
    12: lambda random: _two(random, "mode", list(MODES)) | {"date": _year(random)},
    13: lambda random: {
        "word1": random.choice(REQUEST_WORDS[0]),
        "word2": random.choice(REQUEST_WORDS[1]),
    },
    14: lambda random: {"date": _month(random, date(1993, 1, 1), 60)},
    15: lambda random: {"date": _month(random, date(1993, 1, 1), 58)},
    16: lambda random: {
        "brand": _brand(random),
        "type": _type(random, 2),
        "sizes": random.sample(range(1, 51), 8),
    },
    17: lambda random: {"brand": _brand(random), "container": " ".join(map(random.choice, CONTAINERS))},
    18: lambda random: {"quantity": random.randint(312, 315)},
    19: _brands_and_quantities,
    20: lambda random: {
        "color": random.choice(COLORS),
        "date": _year(random),
        "nation": random.choice(_nations()),
    },
    21: lambda random: {"nation": random.choice(_nations())},
    22: lambda random: {"codes": random.sample(COUNTRY_CODES, 7)},
}

_VALIDATION: dict[int, Parameters] = {
    1: {"delta": 90},
    2: {"size": 15, "type": "BRASS", "region": "EUROPE"},
    3: {"segment": "BUILDING", "date": date(1995, 3, 15)},
    4: {"date": date(1993, 7, 1)},
    5: {"region": "ASIA", "date": date(1994, 1, 1)},
    6: {"date": date(1994, 1, 1), "discount": 6, "quantity": 24},
    7: {"nation1": "FRANCE", "nation2": "GERMANY"},
    8: {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL"},
    9: {"color": "green"},
    10: {"date": date(1993, 10, 1)},
    11: {"nation": "GERMANY"},
    12: {"mode1": "MAIL", "mode2": "SHIP", "date": date(1994, 1, 1)},
    13: {"word1": "special", "word2": "requests"},
    14: {"date": date(1995, 9, 1)},
    15: {"date": date(1996, 1, 1)},
    16: {"brand": "Brand#45", "type": "MEDIUM POLISHED", "sizes": [49, 14, 23, 45, 19, 3, 36, 9]},
    17: {"brand": "Brand#23", "container": "MED BOX"},
    18: {"quantity": 300},
    19: {
        "brand1": "Brand#12",
        "brand2": "Brand#23",
        "brand3": "Brand#34",
        "quantity1": 1,
        "quantity2": 10,
        "quantity3": 20,
    },
    20: {"color": "forest", "date": date(1994, 1, 1), "nation": "CANADA"},
    21: {"nation": "SAUDI ARABIA"},
    22: {"codes": [13, 31, 23, 29, 30, 18, 17]},
}
"""Clauses 2.4.1.4 to 2.4.22.4."""
