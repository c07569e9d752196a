// esscher completion SHELL: the function that asks the program what may stand at the cursor.
#include <memory>

#include "cli/completion.h"
#include "cli/verbs.h"

namespace esscher::cli {
namespace {

// bash takes "=" for the end of a word, so what stands before it is cut from the answers.
constexpr const char* kBash = R"sh(_esscher() {
  local line=${COMP_LINE:0:COMP_POINT} words current word
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current=${words[-1]}
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    case $word in
      :folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
      :files*) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
      *=*) [[ $word == *= ]] && compopt -o nospace 2>/dev/null
        if [[ $current == *=* ]]; then COMPREPLY+=("${word#*=}"); else COMPREPLY+=("$word"); fi ;;
      *) COMPREPLY+=("$word") ;;
    esac
  done < <("${words[0]}" complete-words "${words[@]:1}" 2>/dev/null)
}
complete -F _esscher esscher
)sh";

constexpr const char* kZsh = R"sh(#compdef esscher
_esscher() {
  local line word
  local -a whole begun
  for line in ${(f)"$($words[1] complete-words "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)"}; do
    word=${line%%$'\t'*}
    case $word in
      :folders) _files -/ ;;
      ':files toml') _files -g '*.toml(-.)' ;;
      :files) _files ;;
      *=) begun+=("$word") ;;
      *) whole+=("${word//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#begun )) && compadd -S '' -a begun
  (( $#whole )) && _describe esscher whole
  return 0
}
if [[ $funcstack[1] == _esscher ]]; then _esscher "$@"; else compdef _esscher esscher; fi
)sh";

constexpr const char* kFish = R"sh(function __esscher_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (command $words[1] complete-words $words[2..] "$current" 2>/dev/null)
        switch $line
            case ':folders'
                __fish_complete_directories "$current"
            case ':files*'
                __fish_complete_path "$current"
            case '*'
                echo $line
        end
    end
end
complete -c esscher -f -a '(__esscher_candidates)'
)sh";

}  // namespace

void add_completion(const Command& app, Globals&) {
  const Command verb = app.add("completion", "The Tab key: completion for a shell");
  verb.footer(
      "An installed package has these files in place. From a clone, in the file that your shell\n"
      "reads first:\n"
      "  bash: source <(esscher completion bash)\n"
      "  zsh:  source <(esscher completion zsh)      # after compinit\n"
      "  fish: esscher completion fish | source\n"
      "Examples:\n"
      "  esscher completion bash > esscher.bash\n"
      "  esscher completion fish > esscher.fish");
  const auto shell = std::make_shared<std::string>();
  verb.option("shell", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  verb.run([shell] { write_stdout(*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish); });
}

}  // namespace esscher::cli
