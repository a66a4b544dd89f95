# Completion of drover for bash: source <(drover completion bash)
_drover() {
	local rest=${COMP_LINE:0:COMP_POINT} i word words=() offers offer head=''
	# bash takes words apart at : = and @ as well; what no space separates is one word.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ ${#words[@]} -eq 0 || $rest == [[:space:]]* ]]; then
			rest=${rest#"${rest%%[![:space:]]*}"}
			words+=('')
		fi
		[[ $rest == "$word"* ]] || word=$rest # the cursor is in it
		rest=${rest#"$word"}
		words[${#words[@]} - 1]+=$word
	done
	local last=${words[${#words[@]} - 1]} breaks=${COMP_WORDBREAKS//[^:=@]/}
	[[ -n $breaks && $last == *[$breaks]* ]] && head=${last%"${last##*[$breaks]}"}
	COMPREPLY=()
	if ! offers=$("${words[0]/#\~/$HOME}" __complete -- "${words[@]:1}" 2>/dev/null); then
		compopt -o default 2>/dev/null # a file may be meant
		return
	fi
	while IFS= read -r offer; do
		[[ -n $offer ]] || continue
		[[ $offer == *[!A-Za-z0-9_.:=/@%+-]* ]] && printf -v offer %q "$offer"
		COMPREPLY+=("${offer#"$head"}")
	done <<<"$offers"
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=.] ]] && compopt -o nospace 2>/dev/null
	return 0
}
complete -F _drover drover
