"""The scrolling transcript: only the lines in view are ever turned into cells."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from localglm.tui.actions import of_place
from localglm.tui.entries import TurnEntry
from localglm.tui.looks import looks
from localglm.tui.wrapping import text_of

if TYPE_CHECKING:
    from textual import events
    from textual.selection import Selection

    from localglm.tui.entries import Entry
    from localglm.tui.wrapping import Line

_GUTTER = 2


class Transcript(ScrollView, can_focus=True):
    """Entries from top to bottom; follows the end unless the user has scrolled away."""

    DEFAULT_CSS = """
    Transcript { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; }
    """
    ALLOW_SELECT = True
    BINDINGS: ClassVar = [
        Binding(key, f"screen.act('{each.id}')", each.title, show=False)
        for each in of_place("transcript")
        for key in each.keys
    ]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._entries: list[Entry] = []
        self._laid: list[list[Line]] = []
        self._ends: list[int] = []
        self._at_width = 0
        self._looks: dict[str, Style] = {}
        self.chosen: int | None = None

    # -- content -------------------------------------------------------------------------------
    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that stands here."""
        return tuple(self._entries)

    @property
    def plain(self) -> str:
        """The whole text as laid out."""
        return "\n".join(text_of(line).rstrip() for lines in self._laid for line in lines)

    def add(self, entry: Entry) -> None:
        """Put an entry at the end and show it."""
        self._entries.append(entry)
        self._laid.append([])
        self.changed(entry, follows=True)

    def replace(self, entries: list[Entry]) -> None:
        """Show other entries."""
        self._entries = list(entries)
        self._laid = [[] for _ in entries]
        self.chosen = None
        self._lay_out_all()
        self._follow()

    def take_out(self, entry: Entry) -> None:
        """Take an entry out."""
        place = self._entries.index(entry)
        del self._entries[place], self._laid[place]
        self._measure()
        self.refresh()

    def changed(self, entry: Entry, *, follows: bool = False) -> None:
        """Lay an entry out again; the view follows the end if it was there."""
        if not self._width:
            self._lay_out_all()
            return
        was_at_end = follows or self.is_at_end
        place = self._entries.index(entry)
        before = self._laid[place]
        self._laid[place] = after = entry.lines(self._width)
        pairs = enumerate(zip(before, after, strict=False))
        same = next((i for i, (old, new) in pairs if old != new), min(len(before), len(after)))
        self._measure()
        first = (self._ends[place - 1] if place else 0) + same
        # What stands above the first changed line is on the screen already.
        count = len(after) - same
        if len(after) != len(before):
            count = self.scroll_offset.y + self.size.height - first
        self.refresh_lines(first, max(1, count))
        if was_at_end:
            self._follow()

    @property
    def is_at_end(self) -> bool:
        """Whether the last line is in view."""
        return self.scroll_offset.y >= self.max_scroll_y - 1

    # -- choosing ------------------------------------------------------------------------------
    def choose(self, step: int) -> Entry | None:
        """Move the cursor over the turns by ``step`` and bring the chosen one into view."""
        turns = [i for i, entry in enumerate(self._entries) if isinstance(entry, TurnEntry)]
        if not turns:
            self.chosen = None
            return None
        if self.chosen in turns:
            place = min(max(turns.index(self.chosen) + step, 0), len(turns) - 1)
        else:
            place = len(turns) - 1
        self.chosen = turns[place]
        begin = self._ends[self.chosen - 1] if self.chosen else 0
        if self._ends:
            top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
            if not top <= begin < bottom or self._ends[self.chosen] > bottom:
                self.scroll_to(y=begin, animate=False)
        self.refresh()
        return self._entries[self.chosen]

    @property
    def chosen_entry(self) -> TurnEntry | None:
        """The turn under the cursor."""
        if self.chosen is None or self.chosen >= len(self._entries):
            return None
        entry = self._entries[self.chosen]
        return entry if isinstance(entry, TurnEntry) else None

    def on_focus(self) -> None:
        """Begin at the last turn."""
        self.choose(0)

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.chosen = None
        self.refresh()

    # -- lines ---------------------------------------------------------------------------------
    @property
    def _width(self) -> int:
        return max(0, self.scrollable_content_region.width - _GUTTER)

    def on_resize(self, _event: events.Resize) -> None:
        """Lay everything out again where the width changed."""
        if self._width != self._at_width:
            was_at_end = self.is_at_end
            self._lay_out_all()
            if was_at_end:
                self._follow()

    def notify_style_update(self) -> None:
        """Forget the colours of the theme before."""
        super().notify_style_update()
        self._looks = {}

    def _lay_out_all(self) -> None:
        """Where there is no width there are no lines; the next width brings them."""
        self._at_width = self._width
        width = self._width
        self._laid = [entry.lines(width) if width else [] for entry in self._entries]
        self._measure()
        self.refresh()

    def _measure(self) -> None:
        self._ends = list(accumulate(len(lines) for lines in self._laid))
        height = self._ends[-1] if self._ends else 0
        size = Size(self._width + _GUTTER, height)
        if size != self.virtual_size:
            self.virtual_size = size

    def _follow(self) -> None:
        if self.scroll_offset.y != self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        """Return one line of the view."""
        width = self.size.width
        at = y + self.scroll_offset.y
        place = bisect_right(self._ends, at)
        if not self._looks:
            self._looks = looks(self.app.theme_variables) | {"": self.rich_style}
        base = self._looks[""]
        if place >= len(self._laid):
            return Strip.blank(width, base)
        line = self._laid[place][at - (self._ends[place - 1] if place else 0)]
        gutter = ("▌ ", "cursor") if place == self.chosen else ("  ", "text")
        segments = [
            Segment(text, base + self._looks.get(name, Style())) for text, name in (gutter, *line)
        ]
        strip = Strip(segments).adjust_cell_length(width, base)
        if (selection := self.text_selection) is not None:
            strip = self._marked(strip, selection, at, width)
        return strip.apply_offsets(0, at)

    def _marked(self, strip: Strip, selection: Selection, at: int, width: int) -> Strip:
        span = selection.get_span(at)
        if span is None:
            return strip
        begin, end = span
        end = width if end == -1 else end
        style = self.screen.get_component_rich_style("screen--selection")
        before, inside, after = strip.crop(0, begin), strip.crop(begin, end), strip.crop(end, width)
        return Strip.join([before, inside.apply_style(style), after])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text."""
        lines = (text_of(line) for laid in self._laid for line in laid)
        return selection.extract("\n".join("  " + line for line in lines)), "\n"
