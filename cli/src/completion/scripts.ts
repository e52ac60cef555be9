// Completion scripts. Each calls the installed program, to offer the commands of its version.
import type { SHELLS } from './complete.ts';

const BASH = `# Completion of berth for bash. In ~/.bashrc: source <(berth completion bash)
_berth() {
  local program line last=
  program=$(type -P -- "\${1/#\\~/$HOME}") || program=berth
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) last=$line ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("$program" __complete bash "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)
  case $last in
    :file) compopt -o default ;;
    :folder) compopt -o dirnames ;;
    :nospace) compopt -o nospace ;;
  esac
}
complete -F _berth berth
`;

const ZSH = `#compdef berth
# Completion of berth for zsh. In ~/.zshrc, after compinit: source <(berth completion zsh)
_berth() {
  local program line last=
  local -a found
  program=$(whence -p -- "\${(Q)words[1]}") || program=berth
  for line in "\${(@f)$("$program" __complete zsh "\${(@Q)words[2,CURRENT]}" 2>/dev/null </dev/null)}"; do
    case $line in
      :*) last=$line ;;
      *$'\\t'*) found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
      ?*) found+=("\${line//:/\\\\:}") ;;
    esac
  done
  [[ $words[CURRENT] != --*=* ]] || compset -P '*='
  case $last in
    :file) _files ;;
    :folder) _files -/ ;;
    :nospace) (( $#found )) && _describe -t values 'berth' found -V berth -S '' ;;
    *) (( $#found )) && _describe -t values 'berth' found -V berth ;;
  esac
}
# Sourced it is made known; as a file of fpath it is this function's body.
if [[ $funcstack[1] == _berth ]]; then _berth "$@"; else compdef _berth berth; fi
`;

const FISH = `# Completion of berth for fish. berth completion fish > ~/.config/fish/completions/berth.fish
function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l program (command -s -- $words[1]); or set program berth
  set -l lines (command $program __complete fish $words[2..-1] 2>/dev/null </dev/null)
  test (count $lines) -gt 0; or return
  for line in $lines[1..-2]
    echo -- $line
  end
  switch $lines[-1]
    case :file
      __fish_complete_path (string replace -r '^--[^=]*=' '' -- (commandline -ct))
    case :folder
      __fish_complete_directories (string replace -r '^--[^=]*=' '' -- (commandline -ct)) ''
  end
end
complete -c berth -f -k -a '(__berth_complete)'
`;

export const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = { bash: BASH, zsh: ZSH, fish: FISH };
