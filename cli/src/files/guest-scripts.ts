// Shell scripts for the sandbox side of a copy: resolve the path, then run tar. stderr is shown to
// the user, shortened by remote-failure.ts.
import { quoted } from '../commands/command-text.ts';

/**
 * Packs a path, or the target of a symlink to follow. The `x` preserves trailing newlines of a
 * name, which command substitution strips.
 */
const PACK = String.raw`
f=$1
case $f in /*) ;; *) f=./$f ;; esac
[ -e "$f" ] || [ -L "$f" ] || { echo "no such file or folder" >&2; exit 1; }
if [ "$2" = follow ]; then f=$(readlink -fn -- "$f" && echo x) || exit 1; f=${'$'}{f%x}; fi
case $f in
  */ | */. | */..) d=$f b=. ;;
  *) d=${'$'}{f%/*}/ b=./${'$'}{f##*/} ;;
esac
exec tar --create --format=gnu --hard-dereference --file=- --directory="$d" -- "$b"
`;

/** Finds the target `t` of a copy. */
const TARGET = String.raw`
to=$1 name=$2 kind=$3 mode=$4
no() { echo "$1" >&2; exit 1; }
case $to in /*) ;; *) to=./$to ;; esac
if [ -d "$to" ]; then
  t=${'$'}{to%/}
  [ -z "$name" ] || t=$t/$name
else
  case $to in
    */ | */.) [ "$kind" = folder ] || no "no such folder" ;;
  esac
  t=${'$'}{to%/.}
  while [ "$t" != "${'$'}{t%/}" ]; do t=${'$'}{t%/}; done
fi
if [ "$kind" = file ] && [ -L "$t" ]; then
  r=$(readlink -en -- "$t" && echo x) || no "the target is a dangling symlink"
  t=${'$'}{r%x}
fi
`;

/** Refuses a target of another kind; `p` is its folder. */
const CHECK = String.raw`
if [ "$kind" = folder ]; then
  [ ! -e "$t" ] && [ ! -L "$t" ] || no "the target is not a folder"
elif [ ! -L "$t" ] && [ -e "$t" ]; then
  [ ! -d "$t" ] || no "the target is a folder"
  [ -f "$t" ] || no "the target is not a regular file"
fi
p=${'$'}{t%/*}/
[ -d "$p" ] || no "the parent folder does not exist"
`;

/**
 * Unpacks beside the target and renames when complete. Contents of a folder go directly into an
 * existing one.
 */
const UNPACK = String.raw`
${TARGET.trim()}
take() { tar --extract --file=- --preserve-permissions --no-same-owner "$@"; }
if [ "$kind" = folder ] && [ -d "${'$'}{t:-/}" ]; then
  take --strip-components=1 --directory="${'$'}{t:-/}"
  exit
fi
${CHECK.trim()}
s=$(mktemp -d "$p.berth-cp-XXXXXXXX") || exit 1
trap 'chmod -R u+rwX -- "$s"; rm -rf -- "$s"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
take --directory="$s" || exit
mv -fT -- "$s/r" "$t" || exit
[ "$kind" != folder ] || chmod -- "$mode" "$t"
`;

/** Prints the absolute path of the target of a file, without links. Keeps trailing newlines. */
const RESOLVE = String.raw`
${TARGET.trim()}
${CHECK.trim()}
d=$(CDPATH= cd -- "$p" && pwd -P && echo x) || exit 1
d=${'$'}{d%?x}
printf '%s/%s' "${'$'}{d%/}" "${'$'}{t##*/}"
`;

/** Moves a complete part over the target. A repetition succeeds if the response was lost. */
const PLACE = String.raw`
part=$1 t=$2 size=$3 mode=$4 mtime=$5
no() { echo "$1" >&2; exit 1; }
if [ ! -e "$part" ] && [ -f "$t" ] && [ "$(stat -c '%s %Y' -- "$t")" = "$size $mtime" ]; then exit 0; fi
[ ! -d "$t" ] || no "the target is a folder"
[ "$(stat -c %s -- "$part")" = "$size" ] || no "a program in the sandbox changed the file before it was complete"
chmod -- "$mode" "$part" && touch -m -d "@$mtime" -- "$part" && mv -fT -- "$part" "$t"
`;

/** Writes an archive of the path to stdout. The root entry is the last part of the path, or `.`. */
export function packingScript(path: string, { follow }: { follow: boolean }): string {
  return script(PACK, [path, follow ? 'follow' : '']);
}

interface UnpackPlace {
  path: string;
  /** Name inside an existing folder; empty: contents go directly into the folder. */
  name: string;
  kind: 'file' | 'folder' | 'link';
  /** Final mode of a folder. */
  mode: number;
}

/** Reads an archive with the root entry `r` from stdin. */
export function unpackingScript({ path, name, kind, mode }: UnpackPlace): string {
  return script(UNPACK, [path, name, kind, (mode & 0o7777).toString(8)]);
}

/** Writes the absolute path at which a file is to be placed to stdout. */
export function resolvingScript({ path, name }: Pick<UnpackPlace, 'path' | 'name'>): string {
  return script(RESOLVE, [path, name, 'file', '']);
}

interface PartPlace {
  part: string;
  target: string;
  size: number;
  mode: number;
  /** Unix time in seconds. */
  mtime: number;
}

/** Gives a complete part mode and time, and moves it over its target. */
export function placingScript({ part, target, size, mode, mtime }: PartPlace): string {
  return script(PLACE, [part, target, String(size), (mode & 0o7777).toString(8), String(mtime)]);
}

/** Writes the SHA-256 of a file in hex to stdout. */
export function hashingScript(path: string): string {
  return script('s=$(sha256sum < "$1") && printf %.64s "$s"', [path]);
}

function script(text: string, args: readonly string[]): string {
  return `exec sh -c ${quoted(text.trim())} sh ${args.map((arg) => quoted(arg)).join(' ')}`;
}
