"""``fetchc completion``: the script that makes a shell complete commands of fetchc.

Each script calls the hidden ``fetchc complete``, whose first line of output says what to do with
the others: ``word`` (end the word after the only candidate), ``more`` (it may go on), ``menu``
(no candidate begins as the word does) or ``files`` (complete file names). While a key is being
answered nothing is downloaded, and nothing but the answer reaches the terminal.

Sources: bash(1), "Programmable Completion"; zshcompwid(1), zshcompsys(1); complete(1) of fish.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["SCRIPTS", "run"]

_BASH = r"""# To try it: source <(fetchc completion bash)
# For good: fetchc completion bash > ~/.local/share/bash-completion/completions/fetchc
_fetchc() {
    local how=
    {
        read -r how
        mapfile -t COMPREPLY
    } < <(
        DEBUGINFOD_URLS= "${1/#~\//$HOME/}" complete bash -- \
            "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" "$COMP_TYPE" 2>/dev/null
    )
    case $how in
        files) compopt -o default -o bashdefault ;;
        more) compopt -o nospace ;;
    esac
}
complete -F _fetchc fetchc
"""

_ZSH = r"""#compdef fetchc
# To try it: source <(fetchc completion zsh), after compinit.
# For good: fetchc completion zsh > a folder of $fpath/_fetchc
_fetchc() {
    local how line
    local -a values shown
    {
        read -r how
        while IFS= read -r line; do
            values+=("${line%%$'\t'*}")
            shown+=("${line/$'\t'/  -- }")
        done
    } < <(
        DEBUGINFOD_URLS= ${(Q)~words[1]} complete words -- \
            "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null
    )
    case $how in
        files) _files; return ;;
        more) compadd -U -S '' -l -d shown -a values ;;
        menu) compadd -U -l -d shown -a values; compstate[insert]=menu ;;
        word) compadd -U -l -d shown -a values ;;
        *) return 1 ;;
    esac
}
if [ "$funcstack[1]" = _fetchc ]; then
    _fetchc "$@"
else
    compdef _fetchc fetchc
fi
"""

_FISH = r"""# To try it: fetchc completion fish | source
# For good: fetchc completion fish > ~/.config/fish/completions/fetchc.fish
function __fetchc_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    if string match -qr '^[\'"]' -- $word
        set word (string sub -s 2 -- $word)
    else
        set word (string unescape -- $word)
    end
    set -l asked complete words -- $words[2..-1] "$word"
    set -l lines (env DEBUGINFOD_URLS= $words[1] $asked 2>/dev/null)
    if test "$lines[1]" = files
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $lines[2..-1]
    end
end
complete -c fetchc -f -a '(__fetchc_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""The script of each shell."""


def run(options: Options, output: Output) -> int:
    """Print the script of a shell."""
    (shell,) = options.operands
    if shell not in SCRIPTS:
        output.say(
            f"error: there is no script for `{shell[:40]}`: name one of {', '.join(SCRIPTS)}"
        )
        return 2
    output.document(SCRIPTS[shell].rstrip("\n"))
    return 0
