#!/bin/sh
# Prints the SHA-256 of the payload. A worker for Drover's exec in once mode, with nothing but sh and coreutils.
#
#     command: [bin/plugins/exec, --name, digest, --once, --, sh, plugins/exec/examples/sh/worker.sh]
#
# The payload is on standard input (jq reads its fields, where it is installed), the result goes to standard output, and what
# is for people to standard error. 65 says that the payload is wrong and that trying again cannot help.
set -eu

payload=$(cat)
if [ "$payload" = '{}' ]; then
	echo 'the payload is empty' >&2
	exit 65
fi
echo "run $DROVER_ATTEMPT of $DROVER_TASK_ID" >&2
sum=$(printf '%s' "$payload" | sha256sum)
printf '{"sha256": "%s", "bytes": %d}\n' "${sum%% *}" "$(printf '%s' "$payload" | wc -c)"
