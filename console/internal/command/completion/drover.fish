# Completion of drover for fish: drover completion fish | source
function __drover_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    $program __complete -- $words[2..-1] "$current" 2>/dev/null
    or __fish_complete_path "$current" # a file may be meant
end
complete -c drover -f -a '(__drover_complete)'
