"""Words that the tables are made of (TPC-H specification, clauses 4.2.2.13 and 4.2.3)."""

from __future__ import annotations

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
