"""The screens of ``fetchc browse``: functions, the points of one, what is in scope there."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.text import Text
from textual.app import App
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.filter import LineFilter
from textual.screen import Screen
from textual.suggester import Suggester
from textual.widgets import Footer, Input, OptionList, Static, Tree
from textual.widgets.option_list import Option

from fetchc import CompileError, DebugInfoError, Error, TracerError
from fetchc.browse.questions import Point
from fetchc.browse.trace_pane import TracePane, command_line
from fetchc.diag.render import printable, render

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.color import Color
    from textual.widgets.tree import TreeNode

    from fetchc import Diagnostic, Member
    from fetchc.browse.questions import Value

    Ask = Callable[..., Any]

__all__ = ["Browser", "Scope", "matching"]

_SHOWN = 200  # functions of a list that somebody looks at


def matching(names: Sequence[str], typed: str) -> list[str]:
    """Names that have the characters of ``typed`` in this order, the closest ones first.

    That is: where they are near each other, then where they begin a word, then in a shorter name.
    Capital letters count where ``typed`` has some.
    """
    if not typed:
        return list(names)
    fold = typed.lower() == typed
    found = []
    for name in names:
        nearest = _nearest(name.lower() if fold else name, typed)
        if nearest is not None:
            found.append((*nearest, len(name), name))
    return [name for *_, name in sorted(found)]


def _nearest(name: str, typed: str) -> tuple[int, bool] | None:
    # The fewest characters that have all of `typed`, and whether they begin inside a word; None
    # where no part of the name has them.
    at = name.find(typed)
    if at >= 0:  # nothing is nearer; at the beginning of a word if it is anywhere
        while at > 0 and name[at - 1].isalnum():
            following = name.find(typed, at + 1)
            if following < 0:
                return len(typed), True
            at = following
        return len(typed), False
    best = None
    start = name.find(typed[0])
    while start >= 0:
        end = start
        for character in typed[1:]:
            end = name.find(character, end + 1)
            if end < 0:
                return best  # nor is it behind any later start
        found = end + 1 - start, start > 0 and name[start - 1].isalnum()
        best = found if best is None else min(best, found)
        start = name.find(typed[0], start + 1)
    return best


def _said(refused: Error) -> tuple[Diagnostic, ...]:
    match refused:
        case CompileError() | TracerError():
            return refused.diagnostics
        case DebugInfoError():
            return (refused.diagnostic,)
        case _:
            raise refused


class _Ascii(LineFilter):
    """Draws with ASCII alone, for a terminal that has no UTF-8: each character is one, too."""

    DRAWN: ClassVar = str.maketrans("│┃║└┗╚├┣╠─━═▶▼▲…↑↓←→", "|||```|||---+-^.^v<>")

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments with other strings of the same width."""
        return [
            Segment(_ascii(text.translate(self.DRAWN)), style, control)
            for text, style, control in segments
        ]


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    from rich.cells import cell_len

    return "".join([one if one.isascii() else "?" * cell_len(one) for one in text])


class Browser(App[None]):
    """Asks by ``ask`` (:class:`fetchc.browse.questions.Questions`); ``target`` are the options of a
    command that name the program. ``copied`` is the last command that was copied.
    """

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", "Quit", priority=True, system=True),
    ]
    CSS = """
    .title { height: 1; text-style: bold; }
    OptionList, Tree { border: none; padding: 0; height: 1fr; scrollbar-size: 0 1; }
    Input { border: none; padding: 0; height: 1; }
    """

    def __init__(
        self, ask: Ask, functions: Sequence[str], target: Sequence[str], ascii: bool = False
    ) -> None:
        super().__init__()
        self.ask = ask
        self.functions = functions
        self.target = list(target)
        self.copied = ""
        self._ascii = ascii

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What every line passes before it is drawn."""
        return [*super().get_line_filters(), *[_Ascii()] * self._ascii]

    def on_mount(self) -> None:
        """Show the functions. A signal that ends the program ends it as a key does."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, lambda: self.call_later(self.action_quit))
        self.push_screen(Functions())

    async def action_quit(self) -> None:
        """End the trace, then the browser."""
        for screen in self.screen_stack:
            for pane in screen.query(TracePane):
                await pane.stop()
        self.exit()


class _ListScreen(Screen[None]):
    """A screen with a list to choose from."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move('down')", show=False),
        Binding("up", "move('up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
        Binding("enter", "choose", "Choose"),
    ]

    @property
    def browser(self) -> Browser:
        """The app."""
        assert isinstance(self.app, Browser)
        return self.app

    def action_move(self, how: str) -> None:
        """Move in the list, wherever the keys go otherwise."""
        getattr(self.query_one(OptionList), f"action_{'cursor_' * (how in ('up', 'down'))}{how}")()

    def action_choose(self) -> None:
        """Take what is highlighted in the list."""
        highlighted = self.query_one(OptionList).highlighted
        if highlighted is not None and self.is_current:
            self.choose(highlighted)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take what was clicked, or chosen by a key."""
        if self.is_current:
            self.choose(event.option_index)

    def choose(self, index: int) -> None:
        """Go on with one of the list."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """Show a line or several below the list."""
        self.query_one("#said", Static).update(text)


class Functions(_ListScreen):
    """Functions by a part of their names."""

    def compose(self) -> ComposeResult:
        """A line to type in, and what matches."""
        yield Static(printable(" ".join(self.browser.target)), classes="title", markup=False)
        yield Input(placeholder="type a part of a function's name", compact=True)
        yield OptionList(markup=False, compact=True)
        yield Static("", id="said", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Show all of them."""
        self._show("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show those that match."""
        self._show(event.value)

    def _show(self, typed: str) -> None:
        self._found = matching(self.browser.functions, typed)
        listed = self.query_one(OptionList)
        listed.clear_options()
        listed.add_options([Option(printable(name)) for name in self._found[:_SHOWN]])
        listed.highlighted = 0 if self._found else None
        self._say_number()

    def _say_number(self) -> None:
        number = len(self._found)
        said = "1 function" if number == 1 else f"{number} functions"
        self.say(said + f", {_SHOWN} of them shown" * (number > _SHOWN))

    def on_input_submitted(self) -> None:
        """Take what is highlighted."""
        self.action_choose()

    def choose(self, index: int) -> None:
        """Show the points of a function."""
        # The first question about a function can read for seconds: it is drawn before that.
        self.say("reading the debug information ...")
        self.call_after_refresh(self._show_points, self._found[index])

    def _show_points(self, name: str) -> None:
        if not self.is_current:
            return
        try:
            points = self.browser.ask("points", name)
        except Error as refused:
            self.say(_rendered(_said(refused), ""))
            return
        self._say_number()
        self.app.push_screen(Points(name, points))


def _rendered(diagnostics: Sequence[Diagnostic], text: str) -> str:
    return "\n".join([render(one, text) for one in diagnostics])


class Points(_ListScreen):
    """The places in a function to probe."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back"),
    ]

    def __init__(self, function: str, points: Sequence[Point]) -> None:
        super().__init__()
        self._function = function
        self._points = points

    def compose(self) -> ComposeResult:
        """The entry, the return, lines."""
        yield Static(printable(self._function), classes="title", markup=False)
        options = [
            Option(
                printable(point.label) + ("" if point.reason is None else f"  -- {point.reason}"),
                disabled=point.reason is not None,
            )
            for point in self._points
        ]
        yield OptionList(*options, markup=False, compact=True)
        yield Static("", id="said", markup=False)
        yield Footer()

    def choose(self, index: int) -> None:
        """Show what is in scope at a point."""
        point = self._points[index]
        try:
            variables = self.browser.ask("variables", point)
        except Error as refused:
            self.say(_rendered(_said(refused), ""))
            return
        self.app.push_screen(Scope(point, variables))


class _Members(Tree[str]):
    """The tree of members, each with its expression; empty of the function and of holes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.copy", "Copy", key_display="enter"),
        Binding("right", "screen.open", show=False),
        Binding("left", "screen.close", show=False),
        Binding("space", "screen.pause", show=False),
    ]


class _Completions(Suggester):
    def __init__(self, complete: Callable[[str], list[str]]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        """The first way in which an expression can go on."""
        longer = [one for one in self._complete(value) if one != value and one.startswith(value)]
        return longer[0] if longer else None


class Scope(Screen[None]):
    """What is in scope at a point, as a tree, with what is known of the line with the cursor."""

    # Those of the tree, too: keys that are typed ahead come before it has the focus.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "copy", "Copy", key_display="enter"),
        Binding("right", "open", show=False),
        Binding("left", "close", show=False),
        Binding("down", "move('down')", show=False),
        Binding("up", "move('up')", show=False),
        Binding("t", "trace", "Trace"),
        Binding("e", "edit", "Edit"),
        Binding("p", "pause", "Pause"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("h", "count", "Histogram"),
        Binding("escape", "back", "Back"),
    ]
    CSS = """
    #about { height: auto; max-height: 9; }
    #about > Static { height: auto; }
    #typed { display: none; }
    """

    def __init__(self, point: Point, variables: Sequence[Member]) -> None:
        super().__init__()
        self._point = point
        self._variables = variables
        self._values: dict[str, Value | Error] = {}
        self._counted = False
        self._filter = ""

    @property
    def _browser(self) -> Browser:
        assert isinstance(self.app, Browser)
        return self.app

    def compose(self) -> ComposeResult:
        """The tree, what is known of one of its lines, the trace."""
        title = f"{self._point.function or ''}  {self._point.label}".strip()
        yield Static(printable(title), classes="title", markup=False)
        tree = _Members(Text(printable(self._point.function or self._point.label)), "")
        tree.auto_expand = False
        tree.guide_depth = 2
        self._fill(tree.root, self._variables)
        tree.root.expand()
        yield tree
        with VerticalScroll(id="about", can_focus=False):
            yield Static("", id="known", markup=False)
        yield Input(id="typed", compact=True, select_on_focus=False)
        yield TracePane()
        yield Footer()

    def on_mount(self) -> None:
        """Begin at the first variable."""
        tree = self.query_one(_Members)
        tree.focus()
        tree.move_cursor_to_line(1 if self._variables else 0)

    def _fill(self, node: TreeNode[str], found: Sequence[Member]) -> None:
        widths = [len(one.name) for one in found], [min(len(one.type), 24) for one in found]
        name, kind = (max(listed, default=0) for listed in widths)
        for one in found:
            node.add(Text(_line(one, name, kind)), one.expression, allow_expand=one.leads)

    # The tree.

    def action_move(self, how: str) -> None:
        """Move in the tree."""
        getattr(self.query_one(_Members), f"action_cursor_{how}")()

    def action_open(self) -> None:
        """Show the members, or go to the first one."""
        tree = self.query_one(_Members)
        node = tree.cursor_node
        if node is None:
            return
        if not node.is_expanded and node.allow_expand:
            node.expand()
        elif node.children:
            tree.move_cursor(node.children[0])

    def action_close(self) -> None:
        """Hide the members, or go to what has this one."""
        tree = self.query_one(_Members)
        node = tree.cursor_node
        if node is None:
            return
        if node.is_expanded and node.children and not node.is_root:
            node.collapse()
        elif node.parent is not None:
            tree.move_cursor(node.parent)

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[str]) -> None:
        """Fill in the members when they are first asked for."""
        node = event.node
        if node.children or node.is_root or not node.data:
            return
        try:
            members = self._browser.ask("members", self._point, node.data)
        except Error:
            members = ()
        if members:
            self._fill(node, members)
        else:
            node.collapse()
            node.allow_expand = False

    def on_tree_node_selected(self, event: Tree.NodeSelected[str]) -> None:
        """A click opens and closes."""
        if event.node.allow_expand:
            event.node.toggle()

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[str]) -> None:
        """Show what is known of the line with the cursor."""
        self._known()

    @property
    def _expression(self) -> str:
        node = self.query_one(_Members).cursor_node
        return "" if node is None else node.data or ""

    def _value(self, expression: str) -> Value | Error:
        if expression not in self._values:
            try:
                self._values[expression] = self._browser.ask("value", self._point, expression)
            except Error as refused:
                self._values[expression] = refused
        return self._values[expression]

    def _known(self, more: str = "") -> None:
        expression = self._expression
        command = command_line(["trace", *self._words()])
        lines = ["copied:"] * (command == self._browser.copied) + [printable(command)]
        if expression:
            value = self._value(expression)
            match value:
                case Error():
                    lines.append(_rendered(_said(value), expression))
                case _:
                    fetched = _fetched(value.fetchargs)
                    if fetched:
                        lines.append(f"{fetched}  ({printable(value.type)})")
                        lines.append(_kernels(value.kernels))
                    elif value.traced:
                        lines.append("one fetch-arg cannot hold it; `fetchc trace` shows it")
                    if not (value.traced and not fetched):
                        lines.append(_rendered(value.diagnostics, expression))
        if more:
            lines.insert(0, more)
        self.query_one("#known", Static).update("\n".join([line for line in lines if line]))

    # The command, and the trace.

    def _words(self) -> list[str]:
        expression = self._expression
        named = [expression] if expression and expression[:1] != "-" else []
        named += ["--expr", expression] if expression[:1] == "-" else []
        if self._counted and expression:
            value = self._value(expression)
            how = "" if isinstance(value, Error) else value.counted
            named = [how or "--histogram", expression, "--interval", "1"]
        filter = ["--filter", self._filter] if self._filter else []
        return [*named, *self._browser.target, *self._point.words, *filter]

    def action_copy(self) -> None:
        """Copy the command to the terminal's clipboard (OSC 52), and show it."""
        command = command_line(["trace", *self._words()])
        if not command.isprintable():
            self._known("not copied: a shell takes characters of that name for keys")
            return
        self._browser.copy_to_clipboard(command)
        self._browser.copied = command
        self._known()

    async def action_trace(self) -> None:
        """Trace the expression live; again: end that."""
        pane = self.query_one(TracePane)
        if pane.running:
            await pane.stop()
        else:
            await self._trace()

    async def _trace(self) -> None:
        await self.query_one(TracePane).start(self._words())
        self._known()

    def action_pause(self) -> None:
        """Hold the view still, or let it go on; the trace continues."""
        pane = self.query_one(TracePane)
        pane.paused = not pane.paused

    async def action_count(self) -> None:
        """A histogram in place of lines, or lines again."""
        self._counted = not self._counted
        self._known()
        if self.query_one(TracePane).display:
            await self._trace()

    async def action_back(self) -> None:
        """Close the line that is typed in, then the trace, then go back."""
        pane, typed = self.query_one(TracePane), self.query_one("#typed", Input)
        if typed.display:
            self._typed_end()
        elif pane.display:
            await pane.stop()
            pane.close()
        else:
            self.app.pop_screen()

    # The line to type in: an expression, or a filter.

    def action_edit(self) -> None:
        """Change the expression by hand."""
        self._type(self._expression, "an expression", _Completions(self._complete))

    def action_filter(self) -> None:
        """Change the filter."""
        begun = self._filter or (f"{self._expression} " if self._expression else "")
        self._type(begun, "only events with: EXPR op CONST", None)

    def _complete(self, text: str) -> list[str]:
        try:
            found: list[str] = self._browser.ask("completions", self._point, text)
        except Error:
            return []
        return found

    def _type(self, text: str, what: str, suggester: Suggester | None) -> None:
        typed = self.query_one("#typed", Input)
        self._editing = suggester is not None
        typed.suggester, typed.placeholder = suggester, what
        typed.display = True
        typed.value = text
        typed.cursor_position = len(text)
        typed.focus()

    def _typed_end(self) -> None:
        self.query_one("#typed", Input).display = False
        self.query_one(_Members).focus()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed: a new line of the tree, or a filter for the trace."""
        text = event.value.strip()
        self._typed_end()
        if self._editing:
            if text:
                self._add(text)
            return
        self._filter = text
        self._known()
        if self.query_one(TracePane).display:
            await self._trace()

    def _add(self, expression: str) -> None:
        try:
            found: Member = self._browser.ask("member", self._point, expression)
        except Error as refused:
            self._known(_rendered(_said(refused), expression))
            return
        tree = self.query_one(_Members)
        self._fill(tree.root, [found])
        tree.move_cursor_to_line(tree.last_line)


def _line(found: Member, name: int, kind: int) -> str:
    # Of a variable or a member: where it is, its name and type, its fetch-arg or why it has none.
    where = "" if found.offset is None else f"+{found.offset}"
    if found.bits is not None:
        where += f":{found.bits.width}"
    place = f"{where:<6}" if found.expression != found.name else ""
    if not found.expression:
        return f"{place}(hole of {found.size} bytes)"
    head = f"{place}{found.name:<{name}}  {found.type:<{kind}}"
    rest = f"-- {found.reason}" if found.reason is not None else _fetched(found.fetchargs)
    return printable(f"{head}  {rest}")


def _fetched(fetchargs: Sequence[tuple[str, str]]) -> str:
    return " ".join([f"{suffix}={one}" if suffix else one for suffix, one in fetchargs])


def _kernels(ranges: Sequence[tuple[str, str | None]]) -> str:
    spans = [f"from {first}" + (f" to {last}" if last else "") for first, last in ranges]
    return f"accepted by Linux {' and '.join(spans)}" if spans else "accepted by no kernel"
