"""`ottla completion SHELL`: print the script that teaches a shell to complete `ottla`."""

import click

from ottla.tools import options
from ottla.tools.output import Output

# Instead of click's scripts. The value of `--option=value` is completed as well: bash splits such a
# word in three, and for the other shells it is one word, but the completions contain the value
# only. In fish, a comma ended the description.
_BASH = """\
_ottla_completion() {
    local IFS=$'\\n' index completion kind value
    local -a words=()
    local current=$COMP_CWORD

    for index in "${!COMP_WORDS[@]}"; do
        if [[ ${COMP_WORDS[index]} == "=" && ${COMP_WORDS[index-1]} == --* ]] \\
            && (( index < COMP_CWORD )); then
            (( current-- ))
        else
            words+=("${COMP_WORDS[index]}")
        fi
    done

    for completion in $(env COMP_WORDS="${words[*]}" COMP_CWORD=$current \\
        _OTTLA_COMPLETE=bash_complete "$1"); do
        IFS=',' read -r kind value <<< "$completion"
        if [[ $kind == dir ]]; then
            compopt -o dirnames
        elif [[ $kind == file ]]; then
            compopt -o default
        else
            COMPREPLY+=("$value")
        fi
    done
}

complete -o nosort -F _ottla_completion ottla
"""
_ZSH = """\
#compdef ottla

_ottla_completion() {
    local -a plain described response
    local kind value description
    (( ! $+commands[ottla] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        _OTTLA_COMPLETE=zsh_complete ottla)}")
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='

    for kind value description in ${response}; do
        if [[ $kind == dir ]]; then
            _path_files -/
        elif [[ $kind == file ]]; then
            _path_files -f
        elif [[ $kind == plain && $description == _ ]]; then
            plain+=("$value")
        elif [[ $kind == plain ]]; then
            described+=("$value:$description")
        fi
    done
    (( $#described )) && _describe -V unsorted described
    (( $#plain )) && compadd -V unsorted -a plain
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    # The file is in a folder of fpath.
    _ottla_completion "$@"
else
    compdef _ottla_completion ottla
fi
"""
_FISH = """\
function _ottla_completion
    set -l word (commandline -ct)
    set -l words (commandline -cp | string collect)
    set -l option (string match -r -- '^--[^=]+=' "$word")
    for completion in (env _OTTLA_COMPLETE=fish_complete COMP_WORDS="$words" COMP_CWORD="$word" ottla)
        set -l parts (string split -m 1 "," "$completion")
        switch $parts[1]
            case dir
                for path in (__fish_complete_directories "$parts[2]")
                    echo "$option$path"
                end
            case file
                for path in (__fish_complete_path "$parts[2]")
                    echo "$option$path"
                end
            case plain
                echo "$option$parts[2]"
        end
    end
end

complete --no-files --command ottla --arguments "(_ottla_completion)"
"""
_SCRIPTS = {"bash": _BASH, "fish": _FISH, "zsh": _ZSH}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SCRIPTS)))
@options.formatted
def command(output: Output, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash, in ~/.bashrc:                    eval "$(ottla completion bash)"
    zsh, in ~/.zshrc, after compinit:      eval "$(ottla completion zsh)"
    fish, in ~/.config/fish/config.fish:   ottla completion fish | source
    """
    output.done(_SCRIPTS[shell], shell=shell, script=_SCRIPTS[shell])
