#!/bin/sh
# Submits a task and prints its result, with curl alone: submit.sh QUEUE JSON [SECONDS]
# DROVER_ADDRESS is unix:PATH or https://HOST:PORT; the latter takes DROVER_TOKEN_FILE, and DROVER_CA_FILE for a certificate of your own.
set -eu
queue=$1 payload=$2 seconds=${3:-5}
address=${DROVER_ADDRESS:-unix:var/drover.sock}

call() { # METHOD JSON
	case $address in
	unix:*) set -- "$1" "$2" "http://drover" --unix-socket "${address#unix:}" ;;
	*) set -- "$1" "$2" "$address" ${DROVER_CA_FILE:+--cacert "$DROVER_CA_FILE"} ;;
	esac
	method=$1 body=$2 base=$3
	shift 3
	# The header with the token goes through a descriptor: whoever lists the processes must not see it.
	header="content-type: application/json"
	[ -z "${DROVER_TOKEN_FILE:-}" ] || header="$header
authorization: Bearer $(cat "$DROVER_TOKEN_FILE")"
	curl -sS "$@" -H @/dev/fd/3 -d "$body" "$base/drover.api.v1.TaskService/$method" 3<<-HEADER
		$header
	HEADER
}
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"; } # of flat JSON; with jq it is: jq -r .NAME

answer=$(call Submit "{\"queue\":\"$queue\",\"payload\":\"$(printf %s "$payload" | base64 | tr -d '\n')\"}")
id=$(printf %s "$answer" | field id)
[ -n "$id" ] || { echo "not submitted: $answer" >&2; exit 1; }
answer=$(call Wait "{\"id\":\"$id\",\"timeoutMs\":$((seconds * 1000))}")
case $(printf %s "$answer" | field ended):$(printf %s "$answer" | field state) in
true:STATE_COMPLETED) printf %s "$answer" | field result | base64 -d && echo ;;
true:*) echo "it failed: $answer" >&2; exit 1 ;;
*) echo "not done after $seconds s: $answer" >&2; exit 4 ;;
esac
