"""Twelve topics with words of their own, so that experts can specialise in one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """Words of one topic. No thing belongs to two topics."""

    name: str
    things: tuple[str, ...]
    places: tuple[str, ...]
    people: tuple[str, ...]
    actions: tuple[str, ...]
    numbers: tuple[str, ...]


def _topic(name: str, things: str, places: str, people: str, actions: str, numbers: str) -> Topic:
    lists = (text.split() for text in (things, places, people, actions, numbers))
    return Topic(name, *map(tuple, lists))


TOPICS = (
    _topic(
        "kitchen",
        "kettle oven pan spoon fork knife plate bowl cup jar lid sieve whisk ladle grater toaster"
        " fridge apron recipe flour butter pepper sugar dough soup sauce bread cheese",
        "pantry cellar stove counter",
        "cook baker waiter guest",
        "cleaned heated filled tasted",
        "price weight shelf order",
    ),
    _topic(
        "astronomy",
        "star planet moon comet galaxy nebula orbit crater telescope lens mirror dome satellite"
        " rocket probe asteroid eclipse meteor pulsar quasar aurora equinox zenith horizon cluster"
        " spectrum dwarf ring",
        "observatory desert dish tower",
        "astronomer pilot observer student",
        "watched measured tracked drew",
        "distance catalogue size mass",
    ),
    _topic(
        "trains",
        "engine wagon ticket signal track platform whistle timetable carriage brake switch boiler"
        " coal rail tunnel bridge lamp barrier buffer axle cabin seat luggage conductor freight"
        " express tram depot",
        "station yard junction office",
        "driver porter passenger guard",
        "checked coupled stopped moved",
        "time line speed code",
    ),
    _topic(
        "garden",
        "rose tulip shovel rake hose hedge fence seed pot bench gate pond path lawn bush tree leaf"
        " root branch weed worm bee compost basket ladder tomato carrot bean",
        "shed greenhouse terrace orchard",
        "gardener neighbour child botanist",
        "watered planted cut counted",
        "height age row label",
    ),
    _topic(
        "music",
        "piano violin drum flute guitar trumpet harp cello song melody chord note tempo scale bass"
        " choir opera stage record speaker microphone string bow pedal rhythm march waltz anthem",
        "hall studio theatre balcony",
        "singer drummer composer listener",
        "played tuned heard sold",
        "track length volume channel",
    ),
    _topic(
        "sea",
        "boat anchor sail mast rope net wave tide reef harbour buoy compass chart oar rudder deck"
        " dolphin whale shark crab shell pearl coral island beach storm cargo ferry",
        "port lighthouse dock bay",
        "sailor captain fisher diver",
        "pulled loaded painted sighted",
        "depth draught mark berth",
    ),
    _topic(
        "library",
        "book page cover novel poem atlas map index lexicon letter paper ink pen desk chair stamp"
        " card journal essay chapter title author volume scroll folder archive bookmark quote",
        "foyer basement gallery entrance",
        "librarian reader writer printer",
        "opened sorted borrowed returned",
        "edition year copy number",
    ),
    _topic(
        "workshop",
        "hammer nail saw drill screw bolt nut wrench pliers clamp file chisel plane vice glue wire"
        " cable pipe valve pump gear spring belt wheel motor battery fuse lathe",
        "annex garage store forge",
        "carpenter welder joiner apprentice",
        "fixed sharpened bought lent",
        "part torque gauge rack",
    ),
    _topic(
        "weather",
        "cloud rain snow wind fog hail frost thunder lightning sun rainbow breeze gust drizzle mist"
        " heat cold ice flood drought barometer thermometer vane balloon umbrella season forecast"
        " shower",
        "valley hill coast plain",
        "forecaster hiker farmhand reporter",
        "noted predicted mapped reported",
        "pressure level degree station",
    ),
    _topic(
        "sport",
        "ball goal team match racket bat court field pool race medal ribbon coach helmet glove"
        " skate ski sprint jump throw score pitch referee club league trophy jersey lap",
        "stadium gym arena rink",
        "player runner swimmer keeper",
        "won trained kicked timed",
        "points rank shirt round",
    ),
    _topic(
        "farm",
        "cow pig hen goat sheep horse duck goose barn tractor plough hay straw wheat corn barley"
        " egg milk wool bucket cart trough saddle stable windmill harvest silo dog",
        "meadow pasture mill market",
        "farmer shepherd miller vet",
        "fed washed weighed led",
        "tag herd litres stall",
    ),
    _topic(
        "office",
        "tablet laptop screen keyboard mouse phone invoice report contract meeting calendar"
        " email binder stapler drawer badge budget memo slide agenda receipt envelope cabinet"
        " projector printer scanner copier marker",
        "lobby corridor reception annexe",
        "manager secretary accountant visitor",
        "signed sent filed copied",
        "extension amount room version",
    ),
)

NAMES = tuple(
    "Ada Ben Clara David Emma Felix Greta Hugo Ida Jonas Karin Leo Mia Noah Olga Paul Rosa Sam"
    " Tina Uwe Vera Walter Yara Zoe".split()
)
COLOURS = ("red", "blue", "green", "white", "black", "yellow", "brown", "grey")
