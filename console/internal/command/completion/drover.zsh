#compdef drover
# Completion of drover for zsh: source <(drover completion zsh)
_drover() {
	local program=${(Q)words[1]/#\~/$HOME} out
	local -a before offers open closed
	before=("${(@Q)words[2,CURRENT-1]}")
	if ! out=$("$program" __complete -- "${before[@]}" "${(Q)PREFIX}" 2>/dev/null); then
		compset -P '*[=@]' # a file may be meant
		_files
		return
	fi
	offers=("${(@f)out}")
	offers=("${(@)offers:#}")
	open=("${(@M)offers:#*[:=.]}")
	closed=("${(@)offers:#*[:=.]}")
	local found=1
	((${#open})) && compadd -S '' -- "${open[@]}" && found=0
	((${#closed})) && compadd -- "${closed[@]}" && found=0
	return found
}
if [[ ${funcstack[1]-} == _drover ]]; then
	_drover "$@"
else
	((${+functions[compdef]})) || { autoload -Uz compinit && compinit }
	compdef _drover drover
fi
