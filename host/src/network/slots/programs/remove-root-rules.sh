# Removes the rules of the root namespace, unless an instance still has a slot.
#
# Argument: the registry folder. Environment: ROOT_TABLE, its family and name.
set -eu

cd "$1"
for entry in [0-9]*; do
  if [ -e "$entry" ]; then exit 0; fi
done
# shellcheck disable=SC2086 # family and name are two words
if nft list table $ROOT_TABLE >/dev/null 2>&1; then nft delete table $ROOT_TABLE; fi
